"""What a text says once its escapes are undone, and where in the text that stands.

Refuses to know secrets, JSON documents and spans: it undoes and points back.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

Range: TypeAlias = tuple[int, int]
"""A start and an end (exclusive, past the start) in characters."""

LEVELS = 4
"""How often escapes are undone: three levels (record.md section 4), and one for a text that stands in a span's line."""

_HEX = "[0-9a-fA-F]"
_DIGIT = "[A-Za-z0-9+/_-]"
_NEXT = f"%[89abAB]{_HEX}"
_SHORT = {rf"\{char}": char for char in "\"\\/'"} | {
    rf"\{name}": char for name, char in zip("bfnrt", "\b\f\n\r\t", strict=True)
}


class Disguise(NamedTuple):
    """A way to write characters otherwise: the pattern of what stands for them, and what that is."""

    pattern: re.Pattern[str]
    undo: Callable[[re.Match[str]], str]


class Token(NamedTuple):
    """A piece that two texts write differently: its place in the one and in the other."""

    start: int
    end: int
    other_start: int
    other_end: int


def _unescape(match: re.Match[str]) -> str:
    token = match.group()
    short = _SHORT.get(token)
    if short is not None:
        return short
    code = int(token[2:6], 16)
    if len(token) == 12:
        code = 0x10000 + ((code - 0xD800) << 10) + int(token[8:], 16) - 0xDC00
    return chr(code)


@lru_cache(1024)
def _percent_decoded(token: str) -> str:
    return bytes.fromhex(token.replace("%", "")).decode("utf-8", "surrogateescape")


def _unpercent(match: re.Match[str]) -> str:
    return _percent_decoded(match.group())


def _nothing(_: re.Match[str]) -> str:
    return ""


ESCAPES = Disguise(
    # Beside JSON's own escapes \' is undone: languages that print a text as a literal write it.
    re.compile(rf"\\(?:[\"\\/bfnrt']|u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|u{_HEX}{{4}})"),
    _unescape,
)
PERCENT = Disguise(
    re.compile(
        rf"%[0-7]{_HEX}|%[c-dC-D]{_HEX}{_NEXT}|%[eE]{_HEX}(?:{_NEXT}){{2}}|%[fF][0-7](?:{_NEXT}){{3}}|%[89a-fA-F]{_HEX}"
    ),
    _unpercent,
)
NULS = Disguise(re.compile("\0"), _nothing)
"""What is left of ASCII in UTF-16 and UTF-32: a line in them is refused or odd, and recorded all the same."""
WRAPS = Disguise(
    # A pattern that begins with a plain character is searched many times faster than one that begins by looking back.
    re.compile(rf"(?:\r(?<={_DIGIT}{{20}}\r)\n|\n(?<={_DIGIT}{{20}}\n))[ \t]*(?={_DIGIT})"),
    _nothing,
)
"""The line ends that encoders put into long base64 (RFC 2045 section 6.8)."""


_REVEALING = re.compile(rf"\\(?:[u/]|(?<={_DIGIT}{{20}}\\)\\*[rn])")
"""Escapes that may hide a character which need not be escaped, or a line end in base64; others hide only quotes,
backslashes and control characters. What hides at a deeper level stands behind one more backslash."""
_QUOTED = re.compile(r"[\x00-\x1f\"'\\]")


class View:
    """A text, or what one says with a disguise undone.

    `formed`: a form was decoded, so that `+` may be a blank. `thorough`: anything may have come to light; where it is
    false, only what `is_quoted` can have.
    """

    __slots__ = ("_disguise", "_parent", "formed", "text", "thorough")

    def __init__(self, text: str, parent: "View | None" = None, disguise: Disguise = ESCAPES) -> None:
        self.text = text
        self.formed: bool = disguise is PERCENT or (parent is not None and parent.formed)
        self.thorough: bool = parent is None or (
            parent.thorough and (disguise is not ESCAPES or _REVEALING.search(parent.text) is not None)
        )
        self._parent = parent
        self._disguise = disguise

    def undone(self, disguise: Disguise) -> "View":
        """What this says with `disguise` undone once."""
        return View(disguise.pattern.sub(disguise.undo, self.text), self, disguise)

    def in_original(self, ranges: Sequence[Range]) -> list[Range]:
        """The ranges of the text that all began with, which say what the ranges of this view say."""
        found = list(ranges)
        view = self
        while view._parent is not None:
            found = raised(view._parent.text, view._disguise, found)
            view = view._parent
        return found


def is_quoted(text: str) -> bool:
    """Whether the text has characters that a JSON text or a program's literal cannot hold without an escape."""
    return _QUOTED.search(text) is not None


def views(text: str, *, blanks: bool, quoted: bool) -> Iterator[View]:
    """The text, and all that it says with escapes undone up to LEVELS times and percent-encoding once among them.

    `blanks`: look also at a text without any `%` as at a form's, where `+` is a blank. `quoted`: what is looked for may
    be `is_quoted`; otherwise escapes that hide nothing else are not undone.
    """
    return _views(View(text), LEVELS, (blanks, quoted), True, True)


def _views(view: View, levels: int, sought: tuple[bool, bool], percent: bool, nuls: bool) -> Iterator[View]:
    yield view
    text = view.text
    blanks, quoted = sought
    if percent and ("%" in text or (blanks and "+" in text)):
        form = view.undone(PERCENT)
        if blanks or form.text != text:
            more = form.text.count("\\") > text.count("\\")
            yield from _views(form, levels if more else 0, sought, False, False)
    if nuls and "\0" in text:
        yield from _views(view.undone(NULS), levels, sought, percent, False)
    if levels and "\\" in text and (quoted or (view.thorough and _REVEALING.search(text))):
        plain = view.undone(ESCAPES)
        if len(plain.text) != len(text):
            yield from _views(plain, levels - 1, sought, percent, nuls)


def _tokens(text: str, disguise: Disguise) -> Iterator[Token]:
    gap = 0
    for match in disguise.pattern.finditer(text):
        start, end = match.span()
        place = start - gap
        after = place + len(disguise.undo(match))
        gap = end - after
        yield Token(start, end, place, after)


def _carried(tokens: Iterator[Token], ranges: Sequence[Range]) -> list[Range]:
    # One walk with only the ranges in memory: a text may hold millions of escapes.
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    gap = 0
    token = next(tokens, None)
    for place in sorted({place for start, end in ranges for place in (start, end - 1)}):
        while token is not None and token.end <= place:
            gap = token.other_end - token.end
            token = next(tokens, None)
        if token is not None and token.start <= place:
            starts[place], ends[place] = token.other_start, token.other_end
        else:
            starts[place], ends[place] = place + gap, place + gap + 1
    return [(starts[start], ends[end - 1]) for start, end in ranges]


def lowered(text: str, disguise: Disguise, ranges: Iterable[Range]) -> list[Range]:
    """Where ranges of `text` stand once the disguise is undone; a token that is partly inside counts whole."""
    return _carried(_tokens(text, disguise), list(ranges))


def raised(text: str, disguise: Disguise, ranges: Iterable[Range]) -> list[Range]:
    """Where in `text` stands what is at `ranges` once the disguise is undone; whole tokens."""
    back = (Token(place, after, start, end) for start, end, place, after in _tokens(text, disguise))
    return _carried(back, list(ranges))


def widened(text: str, ranges: Iterable[Range], levels: int = LEVELS) -> list[Range]:
    """The ranges, widened so that none begins or ends inside an escape, at any level of escaping."""
    found = list(ranges)
    if not levels or not found or "\\" not in text:
        return found
    plain = ESCAPES.pattern.sub(ESCAPES.undo, text)
    if len(plain) == len(text):
        return found
    return raised(text, ESCAPES, widened(plain, lowered(text, ESCAPES, found), levels - 1))
