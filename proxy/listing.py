"""Edits of a tools/list answer and of an array: what is taken out goes, every other byte stays.

Refuses to know which tools are hidden and why.
"""

import json
from collections.abc import Callable, Sequence
from json import JSONDecoder
from typing import NamedTuple

from proxy.frames import Message
from proxy.ids import IdKey, id_key
from proxy.keys import fold
from proxy.members import FrameError, scan_members
from proxy.scan import EnvelopeScanner, decoded
from proxy.spans import JSON

_DECODER = JSONDecoder()
_BLANK = " \t\n\r"
_RESULT_NAMES = {fold(name): name for name in ("tools", "cacheScope", "nextCursor")}


class Span(NamedTuple):
    """A part of a text, by where it begins and ends."""

    start: int
    end: int


def elements(text: str, start: int) -> list[Span]:
    """Where the elements of the array at `text[start]` stand; the array is known to be JSON."""
    found: list[Span] = []
    at = start + 1
    while True:
        while text[at] in _BLANK or text[at] == ",":
            at += 1
        if text[at] == "]":
            return found
        _, end = _DECODER.raw_decode(text, at)
        found.append(Span(at, end))
        at = end


def cuts(array: Sequence[Span], gone: Sequence[bool]) -> list[Span]:
    """What to take out for the elements that are `gone`: of each its text, one comma, and the blanks between.

    The comma behind a leading element goes, and the one before any other, so that the array stays an array.
    """
    found: list[Span] = []
    kept = False
    for index, (span, cut) in enumerate(zip(array, gone, strict=True)):
        if not cut:
            kept = True
        elif kept:
            found.append(Span(array[index - 1].end, span.end))
        else:
            found.append(Span(span.start, array[index + 1].start if index + 1 < len(array) else span.end))
    return found


def replaced(text: str, edits: Sequence[tuple[Span, str]]) -> str:
    """The text with each span, none of which overlap, replaced."""
    pieces: list[str] = []
    at = 0
    for span, new in sorted(edits):
        pieces += (text[at : span.start], new)
        at = span.end
    return "".join(pieces) + text[at:]


def without(text: str, array: Sequence[Span], gone: Sequence[bool]) -> str:
    """The text without the elements of its array that are `gone`."""
    return replaced(text, [(span, "") for span in cuts(array, gone)])


def hide_tools(message: Message, hidden: Callable[[str], bool]) -> list[tuple[Span, str]]:
    """The edits that take hidden tools out of a strictly read tools/list answer and make its cache scope private.

    Empty when no tool is hidden. Raises FrameError when a reader could see another list than we do (wire rule 7).
    """
    result = message.members.get("result")
    if result is None or not isinstance(result.value, dict):
        return []
    if "method" in message.members:
        raise FrameError("it is a request and an answer in one")
    table = {member.key: member for member in scan_members(message.text, result.start, _DECODER).members}
    for key in table:
        if _RESULT_NAMES.get(fold(key), key) != key:
            raise FrameError(f"a key of the result is {_RESULT_NAMES[fold(key)]!r} after case folding")
    tools = table.get("tools")
    if tools is None or not isinstance(tools.value, list):
        return []
    gone: list[bool] = []
    for tool in tools.value:
        if not isinstance(tool, dict):
            raise FrameError("an element of tools is no object")
        if any(key != "name" and fold(key) == "name" for key in tool):
            raise FrameError("a tool has a key that is 'name' after case folding")
        name = tool.get("name")
        gone.append(isinstance(name, str) and hidden(name))
    if not any(gone):
        return []
    edits = [(span, "") for span in cuts(elements(message.text, tools.start), gone)]
    scope = table.get("cacheScope")
    if scope is not None:
        edits.append((Span(scope.start, scope.end), '"private"'))
    return edits


class _Pairs(dict[str, JSON]):
    """An object that remembers its repeated keys."""

    pairs: list[tuple[str, JSON]]


def _remember(pairs: list[tuple[str, JSON]]) -> _Pairs:
    table = _Pairs(pairs)
    table.pairs = pairs
    return table


def _values(value: JSON, name: str) -> list[JSON]:
    return [inner for key, inner in value.pairs if fold(key) == name] if isinstance(value, _Pairs) else []


def _integer(digits: str) -> JSON:
    return int(digits) if len(digits) < 4000 else float(digits)


def may_name_tools(raw: bytes) -> bool:
    """Whether some reader may find a list of tools in a line which cannot be read strictly."""
    return b"tools" in raw.lower() or b"\\u" in raw or b"\0" in raw[:4]


def answer_ids(raw: bytes, *, errors: bool = False) -> list[IdKey]:
    """The ids under which some reader may take a line, which cannot be read strictly, for an answer with a result.

    `errors`: or with an error.
    """
    kinds = ("result", "error") if errors else ("result",)
    text = raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff").lstrip()
    decoder = JSONDecoder(object_pairs_hook=_remember, strict=False, parse_int=_integer)
    try:
        value: JSON = decoder.raw_decode(text)[0]
    except (ValueError, RecursionError):
        scanner = EnvelopeScanner()
        scanner.feed(raw)
        texts = [envelope.id_text for envelope in scanner.envelopes]
        keys = [id_key(decoded(text.encode()), text) for text in texts if text is not None]
    else:
        messages = value if isinstance(value, list) else [value]
        answers = [one for one in messages if any(_values(one, kind) for kind in kinds)]
        ids = [asked for one in answers for asked in _values(one, "id")]
        keys = [id_key(asked, json.dumps(asked)) for asked in ids if isinstance(asked, str | int | float)]
    return [key for key in keys if key is not None]
