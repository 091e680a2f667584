"""Secrets that are only heard while a connection is open: credentials in headers and URLs, and the id of the session.

Refuses to know how a secret is found in a text, and where headers come from.
"""

from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from proxy.secretvalues import is_secret_name

if TYPE_CHECKING:
    from proxy.record import Recorder

CREDENTIALS = frozenset({b"authorization", b"proxy-authorization", b"cookie", b"mcp-session-id"})
"""Headers of a request whose values are secret, in lower case."""
COOKIES = b"set-cookie"
MOST = 32
"""Values that are remembered of one connection, those that were heard last."""


def secrets_of(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, ...]:
    """What must stand in no record: every value, of one with a scheme what follows that, and what is known to be a
    secret inside: basic credentials, their password, and each cookie's own value.
    """
    found: list[str] = []
    for name, raw in headers:
        value = raw.decode("latin-1")
        found.append(value)
        scheme, blank, rest = value.partition(" ")
        if name == b"cookie":
            found += [pair.partition("=")[2].strip(' "') for pair in value.split(";") if "=" in pair]
        elif blank:
            found.append(rest.strip())
            if scheme.lower() == "basic":
                found += _credentials(rest)
    return tuple(one for one in found if one)


def _credentials(text: str) -> tuple[str, ...]:
    """User and password of basic credentials, and the password (RFC 7617); nothing where they are none."""
    try:
        pair = b64decode(text.strip()).decode()
    except ValueError:
        return ()
    return pair, pair.partition(":")[2]


@lru_cache(256)
def is_secret_header(name: bytes) -> bool:
    """Whether a header's value is secret by its name; one that repeats an argument of a call (Mcp-Param-*) is not."""
    return name in CREDENTIALS or (not name.startswith(b"mcp-") and is_secret_name(name.decode("latin-1")))


class Heard:
    """What is heard on one connection of the record goes into none of its later spans. `key` is the run's."""

    def __init__(self, recorder: "Recorder", key: bytes) -> None:
        self._recorder = recorder
        self._key = key
        self._first = recorder.redactor
        self._values: OrderedDict[str, None] = OrderedDict()
        self._last: list[tuple[bytes, bytes]] = []
        self._seen: Iterable[tuple[bytes, bytes]] | None = None
        self._target = b""
        self._cookies: list[bytes] = []

    def headers(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Take in the credentials of a request."""
        if headers is self._seen:  # a head that is read again is the same one
            return
        self._seen = headers
        found = [pair for pair in headers if is_secret_header(pair[0])]
        if found and found != self._last:
            self._last = found
            self.take(secrets_of(found))

    def target(self, target: bytes) -> None:
        """Take in the fields of a request's query whose names say that they are secret."""
        if b"?" in target and target != self._target:
            self._target = target
            fields = parse_qsl(target.partition(b"?")[2].decode("latin-1"))
            self.take([value for name, value in fields if is_secret_name(name)])

    def answered(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Take in the cookies that an answer sets."""
        found = [value for name, value in headers if name == COOKIES]
        if found and found != self._cookies:
            self._cookies = found
            self.take([one.decode("latin-1").partition(";")[0].partition("=")[2].strip(' "') for one in found])

    def take(self, values: Iterable[str]) -> None:
        """Take in values; those that are too short are none (record.md section 4)."""
        from proxy.redact import SHORTEST, Redactor  # noqa: PLC0415  (compiles patterns, which few need at the start)

        new = False
        for value in [text.strip() for text in values]:
            if len(value) >= SHORTEST:
                new = new or value not in self._values
                self._values[value] = None
                self._values.move_to_end(value)
        if not new:
            return
        while len(self._values) > MOST:
            self._values.popitem(last=False)
        known = () if self._first is None else self._first.values
        self._recorder.redactor = Redactor([*known, *self._values], self._key)
