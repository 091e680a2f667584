"""Whether a text says a marker, in plain or in disguise: escaped, encoded, in layers, reversed.

Refuses to know where texts come from and what a marker stands for. The forms are those of verdicts.md section 4.
"""

import binascii
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from proxy.disguise import ESCAPES, PERCENT, WRAPS, Disguise

Form: TypeAlias = Literal["plain", "encoded", "reversed", "joined"]
"""How a marker stands there: as it is, escaped or encoded, backwards, or only when texts are put together."""

SHORTEST = 8
"""Characters that a marker must have for any form but plain; a shorter one is met in random base64."""
LAYERS = 3
MOST = 8 * 1024 * 1024
"""Characters of decoded text that are looked at for one text; what nests deeper than any agent needs stops there."""

_ZERO_WIDTH = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]")  # fmt: skip
_BLANKS = re.compile(r"\s{2,}|[^\S ]")
"""What is not one plain blank already: in most texts nothing, and a text may have millions of them."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_HEX = re.compile(r"(?:(?:\\x|0x)?[0-9A-Fa-f]{2}[ \t\r\n:,.-]*){8,}")
_NO_HEX = re.compile(r"\\x|0x|[^0-9A-Fa-f]")
_IS_HEX = bytes(ord("h") if chr(byte) in "0123456789abcdefABCDEF" else ord("|") for byte in range(256))
_IN_HEX = b" \t\r\n:,.-\\x"
_HEX_RUN = b"h" * 16
"""What every match of _HEX comes to, with what may stand between its digits taken out."""
_PIECE = 256 * 1024
"""Characters that are looked through at once."""
_LONG_RUN = 100
"""Characters of a run of base64 digits past which what it says is not remembered."""
_UNREADABLE = re.compile("[\ufffd\x00-\x08\x0e-\x1f\x7f]+")


def folded(text: str) -> str:
    """The text after NFKC, casefold, without zero-width characters, blanks collapsed to one."""
    if text.isascii():
        return _BLANKS.sub(" ", text.casefold()).strip()
    plain = unicodedata.normalize("NFKC", _ZERO_WIDTH.sub("", text)).casefold()
    # Folding may bring what NFKC would fold again.
    return _BLANKS.sub(" ", _ZERO_WIDTH.sub("", unicodedata.normalize("NFKC", plain))).strip()


@dataclass(frozen=True, slots=True)
class Marker:
    """What is looked for: text, folded. `disguised`: every form counts, not the plain one alone."""

    text: str
    disguised: bool

    @classmethod
    def of(cls, text: str) -> "Marker":
        """The marker that a scenario names. Raises ValueError for one without a visible character."""
        told = folded(text)
        if not told:
            raise ValueError("a marker is text that is not blank")
        return cls(told, len(told) >= SHORTEST)

    def form_in(self, text: "Looked") -> Form | None:
        """The form in which the text says the marker; None where it does not."""
        if self.text in text.plain:
            return "plain"
        if not self.disguised:
            return None
        if self.text[::-1] in text.plain:
            return "reversed"
        for view in text.decoded:
            if self.text in view:
                return "encoded"
            if self.text[::-1] in view:
                return "reversed"
        return None


class Looked:
    """One text, looked at: folded, and with all that it says decoded, worked out when first asked for."""

    __slots__ = ("_decoded", "_plain", "_raw", "cut", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.cut = False
        """Whether it says more, decoded, than was looked at; known once `raw` or `decoded` was asked for."""
        self._plain: str | None = None
        self._raw: tuple[str, ...] | None = None
        self._decoded: tuple[str, ...] | None = None

    @property
    def plain(self) -> str:
        """The text, folded."""
        if self._plain is None:
            self._plain = folded(self.text)
        return self._plain

    @property
    def raw(self) -> tuple[str, ...]:
        """The text and what it says decoded, not folded: for patterns."""
        if self._raw is None:
            said, self.cut = ((), False) if is_bare(self.text) else decodings(self.text)
            self._raw = (self.text, *said)
        return self._raw

    @property
    def decoded(self) -> tuple[str, ...]:
        """What the text says decoded, folded."""
        if self._decoded is None:
            self._decoded = tuple(dict.fromkeys(map(folded, self.raw[1:])))
        return self._decoded


def decodings(text: str) -> tuple[tuple[str, ...], bool]:
    """All that a text says with escapes and encodings undone, up to LAYERS of them, none twice, itself left out.

    And whether there was more than MOST.
    """
    seen: dict[str, None] = {text: None}
    layer, budget, cut = [text], MOST, False
    for _ in range(LAYERS):
        found: list[str] = []
        for item in layer:
            for undo in _UNDOINGS:
                for said in undo(item):
                    if not said or said in seen:
                        continue
                    if len(said) > budget:
                        cut = True
                        continue
                    budget -= len(said)
                    seen[said] = None
                    found.append(said)
        layer = found
    del seen[text]
    return tuple(seen), cut


def is_bare(text: str) -> bool:
    """Whether nothing in the text is escaped or encoded, told in a fraction of the time that undoing it would take.

    Of texts with a NUL between them it is true only where it is true of each. False is no more than a suspicion.
    """
    if "\\" in text or "%" in text:
        return False
    if _may_hold_hex(text) and any(_unhex(text)):
        return False
    if "\n" in text and WRAPS.pattern.search(text):
        return False
    return not any(_says(run) if len(run) > _LONG_RUN else _is_known_to_say(run) for run in _BASE64.findall(text))


def _may_hold_hex(text: str) -> bool:
    """Whether digits of a run of hex stand in the text, with nothing between them but what may. Piece by piece, since
    all that went over a connection is one text too."""
    before = b""
    for start in range(0, len(text), _PIECE):
        raw = text[start : start + _PIECE].encode("utf-8", "surrogatepass")
        signs = before + raw.translate(_IS_HEX, _IN_HEX)
        if _HEX_RUN in signs:
            return True
        before = signs[1 - len(_HEX_RUN) :]
    return False


def _says(run: str) -> bool:
    return any(_of_base64(run))


_is_known_to_say = lru_cache(maxsize=10_000)(_says)
"""Names of tools and arguments come again and again."""


def _undoing(disguise: Disguise, sign: str) -> Callable[[str], Iterator[str]]:
    def undo(text: str) -> Iterator[str]:
        if sign in text:
            yield disguise.pattern.sub(disguise.undo, text)

    return undo


def _unform(text: str) -> Iterator[str]:
    """The text of a form: percent-encoded, with `+` for a blank."""
    if "%" in text and "+" in text:
        yield PERCENT.pattern.sub(PERCENT.undo, text.replace("+", " "))


def _unhex(text: str) -> Iterator[str]:
    for run in _HEX.finditer(text):
        digits = _NO_HEX.sub("", run.group())
        for start in (0, 1):
            even = digits[start:]
            yield from _readable(binascii.unhexlify(even[: len(even) // 2 * 2]))


def _unbase64(text: str) -> Iterator[str]:
    texts = [text]
    if "\n" in text and WRAPS.pattern.search(text):
        texts.append(WRAPS.pattern.sub("", text))
    for one in texts:
        for run in _BASE64.finditer(one):
            yield from _of_base64(run.group())


def _of_base64(run: str) -> Iterator[str]:
    digits = run.replace("-", "+").replace("_", "/")
    # Where the run begins inside of something else, its groups of four begin elsewhere.
    for start in range(4):
        whole = digits[start:]
        whole = whole[: len(whole) - 1] if len(whole) % 4 == 1 else whole
        yield from _readable(binascii.a2b_base64(whole + "=" * (-len(whole) % 4)))


def _readable(raw: bytes) -> Iterator[str]:
    """The runs of bytes that are text, long enough to hold a marker; random bytes have next to none."""
    if raw.count(0) * 3 > len(raw):
        # What is left of ASCII in UTF-16 and UTF-32.
        raw = raw.replace(b"\0", b"")
    for run in _UNREADABLE.split(raw.decode("utf-8", "replace")):
        if len(run) >= SHORTEST:
            yield run


_UNDOINGS: tuple[Callable[[str], Iterable[str]], ...] = (
    _undoing(ESCAPES, "\\"),
    _undoing(PERCENT, "%"),
    _unform,
    _unhex,
    _unbase64,
)
