"""The members of a JSON object and their places in its text: what is recorded or edited is what crossed the wire.

Refuses to know what a message is.
"""

import re
from collections.abc import Callable, Iterable
from json import JSONDecoder
from typing import NamedTuple, TypeAlias

from proxy.keys import PROTOTYPE, PROTOTYPE_PROBLEM, shown
from proxy.spans import JSON

BLANK = " \t\n\r"
Scan: TypeAlias = Callable[[str, int], tuple[JSON, int]]


class FrameError(ValueError):
    """A line that is not one unambiguous JSON-RPC message; the message says why."""


class Member(NamedTuple):
    """One member of an object: `value` decoded, and its text at `start:end` of the line's text."""

    key: str
    value: JSON
    start: int
    end: int


def _refuse_constant(name: str) -> JSON:
    raise FrameError(f"{name} is not JSON")


def _refuse_repeats(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise FrameError(f"the key {shown(repeated(key for key, _ in pairs))} is repeated")
    if PROTOTYPE in table:
        raise FrameError(PROTOTYPE_PROBLEM)
    return table


def repeated(keys: Iterable[str]) -> str:
    """The first key that comes again, "" where none does."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _any_integer(digits: str) -> JSON:
    # int() refuses more than 4300 digits; what is only looked at need not be exact.
    return int(digits) if len(digits) < 4000 else float(digits)


STRICT = JSONDecoder(object_pairs_hook=_refuse_repeats, parse_constant=_refuse_constant)
LOOSE = JSONDecoder(strict=False)
LOOSER = JSONDecoder(strict=False, parse_int=_any_integer)


_PLAIN = re.compile(
    r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*'
    r'(?:(?:"([^"\\\x00-\x1f]*)"|(-?(?:0|[1-9][0-9]{0,17})))[ \t\n\r]*([,}])[ \t\n\r]*)?'
)
"""A key without escapes, its colon, and if the value is a text without escapes or a short whole number, that and what
is behind it. In such a text a reader can see nothing but what stands there; any other takes the decoder's way.
"""
_BEHIND = re.compile(r"[ \t\n\r]*([,}])[ \t\n\r]*")


def scanner(decoder: JSONDecoder) -> Scan:
    """The C scanner behind `raw_decode`, which would wrap each of its results once more.

    It gives the value at a place and where that ends; it raises StopIteration where there is none.
    """
    scan: Scan = vars(decoder)["scan_once"]
    return scan


def skip(text: str, at: int) -> int:
    """The first place from `at` on that is no blank. Raises IndexError past the end."""
    while text[at] in BLANK:
        at += 1
    return at


class _Object(NamedTuple):
    """The members of an object in their order, repeats too, where it ends, and the members of its `params`."""

    members: list[Member]
    end: int
    params: list[Member]


def scan_members(text: str, start: int, decoder: JSONDecoder, opened: str | None = None) -> _Object:
    """Read the object that begins at `text[start]`; the member named `opened` is read into `params` as well.

    Raises FrameError, IndexError or ValueError where the text is no object.
    """
    at = skip(text, start + 1)
    if text[at] == "}":
        return _Object([], at + 1, [])
    scan = scanner(decoder)
    try:
        return _scan(text, at, scan, decoder, opened)
    except StopIteration:
        raise FrameError("it is not JSON, or not whole") from None


def _scan(text: str, at: int, scan: Scan, decoder: JSONDecoder, opened: str | None) -> _Object:
    members: list[Member] = []
    params: list[Member] = []
    plain_at, behind_at = _PLAIN.match, _BEHIND.match
    while True:
        plain = plain_at(text, at)
        if plain is not None:
            key, said, number, mark = plain.groups()
            if mark is not None:
                begin, end = plain.span(2 if number is None else 3)
                if number is None:
                    members.append(Member(key, said, begin - 1, end + 1))
                else:
                    members.append(Member(key, int(number), begin, end))
                if mark == "}":
                    return _Object(members, plain.end(4), params)
                at = plain.end()
                continue
            begin = plain.end()
        else:
            if text[at] != '"':
                raise FrameError(f"a key is missing at character {at}")
            name, at = scan(text, at)
            key = str(name)
            at = skip(text, at)
            if text[at] != ":":
                raise FrameError(f"a colon is missing at character {at}")
            begin = skip(text, at + 1)
        if key == opened and text[begin] == "{":
            params, at, _ = scan_members(text, begin, decoder)
            value: JSON = {member.key: member.value for member in params}
        else:
            value, at = scan(text, begin)
        members.append(Member(key, value, begin, at))
        behind = behind_at(text, at)
        if behind is None:
            raise FrameError(f"a comma is missing at character {at}")
        if behind[1] == "}":
            return _Object(members, behind.end(1), params)
        at = behind.end()
