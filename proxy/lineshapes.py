"""What lines of one kind have in common, learned of them: fixed text, between which each line has values of its own.

Refuses to know what a line is for, and to guess: a line that is not, letter by letter, of the shape gives None.
"""

from collections.abc import Iterable, Mapping
from json import JSONDecoder
from json.encoder import encode_basestring_ascii as quote

from proxy.spans import Attribute

DIGITS = 20
"""Digits that a whole number has less of."""
LONGEST = 200
"""Characters of a text that may be the same in all lines; a longer one is each line's own from the first."""

_scan = JSONDecoder().raw_decode


class Shape:
    """Reads the attributes of a line, and nothing behind them but `tail`. Most of the line that it is made of is fixed
    text at first; `widen` makes room for what differs in another line."""

    __slots__ = ("_attributes", "_end", "_own", "_parts", "_tail")

    def __init__(self, attributes: Mapping[str, Attribute], tail: str) -> None:
        self._tail = tail
        self._attributes = dict(attributes)
        self._own: set[str] = set()
        self._divide(key for key, value in attributes.items() if isinstance(value, str) and len(value) > LONGEST)

    def read(self, text: str, at: int) -> dict[str, Attribute] | None:
        """The attributes that stand from `at` on; None where the rest of the line has another shape."""
        found = self._attributes.copy()
        for fixed, length, key, is_text in self._parts:
            if not text.startswith(fixed, at):
                return None
            at += length
            if is_text:
                try:
                    # The fixed text ends in the quote that begins the value.
                    found[key], at = _scan(text, at - 1)
                except ValueError:
                    return None
            else:
                end = text.find('"', at)
                digits = text[at:end]
                if not digits.isdigit() or len(digits) >= DIGITS:
                    return None
                found[key] = int(digits)
                at = end
        return found if text[at:] == self._end else None

    def widen(self, attributes: Mapping[str, Attribute]) -> None:
        """Take in a line with the same keys, in the same order, the same kinds of values, and the same truth values."""
        self._divide(key for key, value in attributes.items() if self._attributes[key] != value)

    def _divide(self, own: Iterable[str]) -> None:
        """Put the fixed text together, up to each value that is a line's own."""
        for key in own:
            self._own.add(key)
            self._attributes[key] = "" if isinstance(self._attributes[key], str) else 0
        parts: list[tuple[str, int, str, bool]] = []
        fixed, comma = "", ""
        for key, value in self._attributes.items():
            fixed += comma + encoded(key, value)
            comma = ","
            if key in self._own:
                # A text is read with the quote behind it, a number up to that quote.
                is_text = isinstance(value, str)
                ending = '"}}' if is_text else '0"}}'
                begin = fixed.removesuffix(ending)
                parts.append((begin, len(begin), key, is_text))
                fixed = ending[1:]
        self._parts = tuple(parts)
        self._end = fixed + self._tail


def encoded(key: str, value: Attribute) -> str:
    """The text of an attribute as our encoder writes it, for any key: nothing is kept of it."""
    match value:
        case str():
            told = f'"stringValue":{quote(value)}'
        case bool():
            told = f'"boolValue":{"true" if value else "false"}'
        case _:
            told = f'"intValue":"{value}"'
    return f'{{"key":{quote(key)},"value":{{{told}}}}}'
