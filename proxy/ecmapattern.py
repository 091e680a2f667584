"""The regular expressions of JSON Schema, those of ECMAScript (ECMA-262), as Python's that fit the same texts.

What has no such is refused, so that no text slips past a pattern. Refuses to know where in a schema one stands.
"""

import re

_SETS: dict[str, tuple[tuple[int, int], ...]] = {
    "d": ((0x30, 0x39),),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "s": (
        *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
        *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
    ),
}
"""What the escapes for several characters are in ECMAScript, in order: digits and words of ASCII, blanks of Unicode."""


def _ranges(kind: str) -> str:
    """Such a set, or for a capital letter all that is not in it, inside of a class of Python's."""
    found = _SETS[kind.lower()]
    if kind.isupper():
        ends = [-1, *(end for pair in found for end in pair), 0x110000]
        found = tuple((ends[at] + 1, ends[at + 1] - 1) for at in range(0, len(ends), 2))
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in found)


_WORD = f"[{_ranges('w')}]"
_EDGES = {
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
}
_GROUP = re.compile(r"\(\?(?:[:=!]|<[=!])")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
_PYTHONS = re.compile(r"\{,[0-9]+\}")
"""A quantifier to Python alone."""
_CHARACTERS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "0": "\0"}
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}")


class PatternError(ValueError):
    """A pattern that Python would read otherwise; the message says what in it."""


def python_pattern(pattern: str) -> str:
    """The pattern for Python's `re.search`, without flags. Raises PatternError."""
    found = _Reader(pattern).read()
    try:
        re.compile(found)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"the pattern {pattern!r} cannot be used: {error}") from None
    return found


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def _refuse(self, part: str) -> PatternError:
        return PatternError(
            f"the pattern {self._text!r} has {part!r}, which Python reads otherwise than ECMAScript; write it without"
        )

    def read(self) -> str:
        text, out = self._text, ["(?:"]
        quantified = True
        while self._at < len(text):
            letter = text[self._at]
            if (match := _QUANTIFIER.match(text, self._at)) is not None:
                if quantified:
                    raise self._refuse(match.group())
                out.append(match.group())
                self._at = match.end()
                quantified = True
                continue
            if (match := _PYTHONS.match(text, self._at)) is not None:
                raise self._refuse(match.group())
            quantified = letter in "(|"
            out.append(self._atom(letter))
        return "".join(out) + ")"

    def _atom(self, letter: str) -> str:
        text, at = self._text, self._at
        if letter == "\\":
            return self._escape()
        if letter == "[":
            return self._class()
        if letter == "(":
            match = _GROUP.match(text, at)
            if match is None and text.startswith("(?", at):
                raise self._refuse(text[at : at + 4])
            self._at += 1 if match is None else len(match.group())
            return "(" if match is None else match.group()
        self._at += 1
        match letter:
            case "$":
                return r"\Z"
            case ".":
                return r"[^\n\r\u2028\u2029]"
            case "^" | "|" | ")":
                return letter
            case _:
                return re.escape(letter)

    def _escape(self) -> str:
        """An escape outside of a class."""
        letter = self._text[self._at + 1 : self._at + 2]
        if letter in _EDGES:
            self._at += 2
            return _EDGES[letter]
        if letter.lower() in _SETS:
            self._at += 2
            return f"[{_ranges(letter)}]"
        return re.escape(self._character())

    def _character(self) -> str:
        """The character that an escape stands for."""
        text, at = self._text, self._at + 1
        letter = text[at : at + 1]
        if (match := _HEX.match(text, at)) is not None:
            number = int(match[1] or match[2] or match[3], 16)
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise self._refuse(f"\\{match.group()}")
            self._at = match.end()
            return chr(number)
        if letter in _CHARACTERS and letter and not text[at : at + 2].isdigit():
            self._at += 2
            return _CHARACTERS[letter]
        if not letter or not letter.isascii() or letter.isalnum() or letter == "_":
            raise self._refuse(f"\\{letter}")
        self._at += 2
        return letter

    def _class(self) -> str:
        text = self._text
        self._at += 1
        negated = text.startswith("^", self._at)
        self._at += negated
        parts: list[str] = []
        while not text.startswith("]", self._at):
            if self._at >= len(text):
                raise self._refuse("[")
            low = self._member()
            if text.startswith("-", self._at) and not text.startswith("-]", self._at):
                self._at += 1
                high = self._member()
                if len(low) > 1 or len(high) > 1 or low > high:
                    raise self._refuse(f"{low}-{high}")
                parts.append(f"{re.escape(low)}-{re.escape(high)}")
            else:
                parts.append(re.escape(low) if len(low) == 1 else low)
        self._at += 1
        if not parts:
            return r"[\s\S]" if negated else "(?!)"
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _member(self) -> str:
        """One member of a class: a character, or what of Python's stands for several."""
        letter = self._text[self._at : self._at + 1]
        if letter != "\\":
            if not letter:
                raise self._refuse("[")
            self._at += 1
            return letter
        kind = self._text[self._at + 1 : self._at + 2]
        if kind == "b":
            self._at += 2
            return "\b"
        if kind.lower() in _SETS:
            self._at += 2
            return _ranges(kind)
        return self._character()
