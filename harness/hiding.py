"""Keeps the secrets of one run out of what the harness writes and says, by the proxy's own redactor.

Refuses to know which values are secret and what kind of document a text belongs to.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from hmac import digest
from io import TextIOBase
from traceback import format_exception
from types import TracebackType
from typing import TextIO

from proxy.redact import SHORTEST, Redactor, redact_json
from proxy.spans import JSON

_MARK = re.compile(r"\[redacted:[0-9a-f]{16}\]")
_SHA256 = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{64}(?![0-9A-Za-z])")


@dataclass(frozen=True, slots=True)
class Hiding:
    """`key` is the run's, 32 bytes. `values` are the secrets that are long enough to be found in a text.

    `too_short` names the others. `redactor` is None where there is nothing to hide: then every method gives back what
    it is given.
    """

    key: bytes
    values: tuple[str, ...] = ()
    too_short: tuple[str, ...] = ()
    redactor: Redactor | None = None

    def text(self, text: str) -> str:
        """The text with a mark for each secret; a JSON text stays JSON."""
        return text if self.redactor is None else self.redactor.text(text)[0]

    def json(self, value: JSON) -> JSON:
        """The value with its texts, keys and numbers hidden."""
        return value if self.redactor is None else redact_json(self.redactor, value)[0]

    def finds(self, text: str) -> bool:
        """Whether a secret is in the text."""
        return self.redactor is not None and self.redactor.finds(text)

    def evidence(self, text: str) -> str:
        """As `text`, for what a database holds: SHA-256 digests become keyed ones too.

        A digest of a row's text beside that text with a mark in it would let the secret be guessed (record.md
        section 3). Within a run equal digests stay equal.
        """
        if self.redactor is None:
            return text
        return _SHA256.sub(lambda found: f"[digest:{self._keyed(found[0])}]", self.redactor.text(text)[0])

    def number(self, text: str) -> int:
        """A negative number, always the same in this run, in place of one that must not be shown."""
        return ~int(self._keyed(text), 16)

    def _keyed(self, text: str) -> str:
        return digest(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hex()[:12]

    def file_digest(self, data: bytes) -> str:
        """SHA-256 of a file as the run folder may show it: of the text with `[redacted]` for each secret in it.

        It is the same in every run, and of a file without secrets it is the file's own.
        """
        text = data.decode("utf-8", "surrogateescape")
        if self.finds(text):
            data = _MARK.sub("[redacted]", self.text(text)).encode("utf-8", "surrogateescape")
        return sha256(data).hexdigest()


def make_hiding(secrets: Mapping[str, str], key: bytes) -> Hiding:
    """Hides these secrets, given by what a warning may call them."""
    redactor = Redactor(secrets.values(), key, tuple(secrets))
    values = tuple(dict.fromkeys(value for value in secrets.values() if len(value.strip()) >= SHORTEST))
    return Hiding(key, values, redactor.too_short, redactor if redactor.active else None)


class HiddenStream(TextIOBase):
    """A text stream in front of another one, to which whole lines without secrets go on."""

    def __init__(self, stream: TextIO, hiding: Hiding) -> None:
        self._stream = stream
        self._hiding = hiding
        self._pending = ""

    def write(self, text: str) -> int:
        """Take the text; what follows its last line end waits for the rest of its line."""
        whole, end, rest = (self._pending + text).rpartition("\n")
        self._pending = rest
        if end:
            self._stream.write(self._hiding.text(whole) + end)
            self._stream.flush()
        return len(text)

    def finish(self) -> None:
        """Let an unfinished line go on too."""
        rest, self._pending = self._pending, ""
        self._stream.write(self._hiding.text(rest))
        self._stream.flush()


@contextmanager
def hidden_streams(hiding: Hiding) -> Iterator[None]:
    """Whatever this process prints through `sys.stdout` and `sys.stderr` goes without secrets, tracebacks too."""
    if hiding.redactor is None:
        yield
        return
    output, errors = HiddenStream(sys.stdout, hiding), HiddenStream(sys.stderr, hiding)
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            yield
        finally:
            output.finish()
            errors.finish()


def traceback_text(hiding: Hiding, error: BaseException) -> str:
    """The traceback of an error as Python prints it, hidden as a whole: a secret may have several lines."""
    return hiding.text("".join(format_exception(error)))


def hide_last_words(hiding: Hiding) -> None:
    """From now on the traceback of an error that ends this process has no secrets."""

    def tell(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        sys.stderr.write(traceback_text(hiding, error))
        sys.stderr.flush()

    sys.excepthook = tell
