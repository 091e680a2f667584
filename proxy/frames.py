"""One line of the wire read as JSON-RPC: strictly where policy judges it, loosely where it is only looked at.

A Message keeps the text and the place of every member, so that what is recorded or edited is what crossed the wire.
Refuses to know directions, sessions and policy.
"""

import json
import re
from collections.abc import Callable, Iterable
from json import JSONDecoder
from typing import NamedTuple, TypeAlias

from proxy.ids import IdKey, id_key
from proxy.keys import (
    ENVELOPE_NAMES,
    PARAMS_NAMES,
    PROTOTYPE,
    PROTOTYPE_PROBLEM,
    envelope_problem,
    params_problem,
    shown,
)
from proxy.spans import JSON

CAP = 16 * 1024 * 1024
"""Bytes of one line that are looked at (wire rule 2)."""

_BLANK = " \t\n\r"
_Scan: TypeAlias = Callable[[str, int], tuple[JSON, int]]


class FrameError(ValueError):
    """A line that is not one unambiguous JSON-RPC message; the message says why."""


class Member(NamedTuple):
    """One member of an object: `value` decoded, and its text at `start:end` of the line's text."""

    key: str
    value: JSON
    start: int
    end: int


class Message(NamedTuple):
    """One JSON object of a line: the line's `text`, the object at `start:end`, its members, and those of `params`.

    Of repeated keys the last one counts, as in most readers; a strict read has none. `method` is None where it is
    absent or no text, `id_text` the id as it crossed the wire, and `id_key` the id to correlate by, None where it is
    absent or neither a string nor a number.
    """

    text: str
    start: int
    end: int
    members: dict[str, Member]
    params: dict[str, Member]
    method: str | None
    id_text: str | None
    id_key: IdKey | None

    @property
    def source(self) -> str:
        """The object's own text."""
        return self.text[self.start : self.end]

    @property
    def is_answer(self) -> bool:
        """Whether this is a result or an error and no request."""
        return "method" not in self.members and ("result" in self.members or "error" in self.members)

    def text_of(self, member: Member) -> str:
        """A member's value as it crossed the wire."""
        return self.text[member.start : member.end]


class Line(NamedTuple):
    """What a line holds: one message, or with `batch` the messages of an array."""

    messages: tuple[Message, ...]
    batch: bool


def _refuse_constant(name: str) -> JSON:
    raise FrameError(f"{name} is not JSON")


def _refuse_repeats(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise FrameError(f"the key {shown(_repeated(key for key, _ in pairs))} is repeated")
    if PROTOTYPE in table:
        raise FrameError(PROTOTYPE_PROBLEM)
    return table


def _repeated(keys: Iterable[str]) -> str:
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
_LOOSE = JSONDecoder(strict=False)
_LOOSER = JSONDecoder(strict=False, parse_int=_any_integer)


_PLAIN = re.compile(
    r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*'
    r'(?:(?:"([^"\\\x00-\x1f]*)"|(-?(?:0|[1-9][0-9]{0,17})))[ \t\n\r]*([,}])[ \t\n\r]*)?'
)
"""A key without escapes, its colon, and if the value is a text without escapes or a short whole number, that and what
is behind it. In such a text a reader can see nothing but what stands there; any other takes the decoder's way.
"""
_BEHIND = re.compile(r"[ \t\n\r]*([,}])[ \t\n\r]*")


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
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
    at = _skip(text, start + 1)
    if text[at] == "}":
        return _Object([], at + 1, [])
    # The C scanner behind raw_decode, which would wrap each of its results once more.
    scan: _Scan = vars(decoder)["scan_once"]
    try:
        return _scan(text, at, scan, decoder, opened)
    except StopIteration:
        raise FrameError("it is not JSON, or not whole") from None


def _scan(text: str, at: int, scan: _Scan, decoder: JSONDecoder, opened: str | None) -> _Object:
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
            at = _skip(text, at)
            if text[at] != ":":
                raise FrameError(f"a colon is missing at character {at}")
            begin = _skip(text, at + 1)
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


def _object(text: str, start: int, decoder: JSONDecoder) -> Message:
    members, end, inner = scan_members(text, start, decoder, "params")
    table = {member[0]: member for member in members}
    params = {member[0]: member for member in inner}
    method, named = table.get("method"), table.get("id")
    if decoder is STRICT:
        if len(table) != len(members):
            raise FrameError(f"the key {shown(_repeated(member.key for member in members))} is repeated")
        if len(params) != len(inner):
            raise FrameError(f"the key {shown(_repeated(member.key for member in inner))} is repeated")
        if method is not None and not isinstance(method.value, str):
            raise FrameError("its method is no text, and some readers make text of it")
        problem = None if table.keys() <= ENVELOPE_NAMES else envelope_problem(table)
        if problem is None and not params.keys() <= PARAMS_NAMES:
            problem = params_problem(params)
        if problem is not None:
            raise FrameError(problem)
    said = method.value if method is not None and isinstance(method.value, str) else None
    if named is None:
        return Message(text, start, end, table, params, said, None, None)
    id_text = text[named.start : named.end]
    return Message(text, start, end, table, params, said, id_text, id_key(named.value, id_text))


def _batch(text: str, at: int, decoder: JSONDecoder) -> tuple[list[Message], int]:
    """The elements of the array at `text[at]`, each of which must be an object, and where it ends."""
    found: list[Message] = []
    at = _skip(text, at + 1)
    if text[at] == "]":
        raise FrameError("it is an empty array")
    while True:
        if text[at] != "{":
            raise FrameError("an element of the array is no object")
        found.append(_object(text, at, decoder))
        at = _skip(text, found[-1].end)
        if text[at] == "]":
            return found, at + 1
        if text[at] != ",":
            raise FrameError(f"a comma is missing at character {at}")
        at = _skip(text, at + 1)


def _read(text: str, decoder: JSONDecoder) -> Line:
    padded = text + "\n"  # so that a skip over blanks always ends inside the text
    try:
        at = _skip(padded, 0)
        if padded[at] == "{":
            message = _object(padded, at, decoder)
            end = message.end
            line = Line((message,), batch=False)
        elif padded[at] == "[":
            elements, end = _batch(padded, at, decoder)
            line = Line(tuple(elements), batch=True)
        else:
            raise FrameError("it is not a JSON object")
    except IndexError:
        raise FrameError("it is not JSON, or not whole") from None
    except RecursionError:
        raise FrameError("it is nested too deeply to be read") from None
    except FrameError:
        raise
    except ValueError as error:
        raise FrameError(f"it is not JSON: {str(error).split(':')[0]}") from None
    if padded[end:].strip(_BLANK):
        raise FrameError("something follows the message on its line")
    return line


def read_strict(line: bytes) -> Line:
    """The line as one strict RFC 8259 object, or an array of such; FrameError says why it is not (wire rule 7)."""
    if line.startswith(b"\xef\xbb\xbf"):
        raise FrameError("it begins with a byte order mark")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FrameError(f"it is not UTF-8 at byte {error.start}") from None
    read = _read(text, STRICT)
    # Only an escape can bring in half a surrogate pair: raw ones are not UTF-8.
    if "\\u" in text and ("\\ud" in text or "\\uD" in text):
        for message in read.messages:
            _refuse_surrogates(message)
    return read


def _refuse_surrogates(message: Message) -> None:
    try:
        for member in message.members.values():
            member.key.encode()
            json.dumps(member.value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise FrameError("it holds half of a surrogate pair") from None
    except RecursionError:
        raise FrameError("it is nested too deeply to be read") from None


def read_loose(line: bytes) -> Line:
    """The line as a lenient reader has it: last of repeated keys, NaN, control characters, any bytes in text."""
    text = line.decode("utf-8", "surrogateescape")
    try:
        return _read(text, _LOOSE)
    except FrameError:
        return _read(text.removeprefix("\ufeff"), _LOOSER)
