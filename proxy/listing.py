"""Edits of a tools/list answer and of an array: what is taken out goes, every other byte stays.

Refuses to know which tools are hidden and why.
"""

from collections.abc import Callable, Sequence
from json import JSONDecoder
from typing import NamedTuple

from proxy.frames import FrameError, Message, scan_members

_DECODER = JSONDecoder()
_BLANK = " \t\n\r"


class Span(NamedTuple):
    """An element of an array, by where its text begins and ends."""

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


def without(text: str, array: Sequence[Span], gone: Sequence[bool]) -> str:
    """The text without the elements that are `gone`: of each its own text, one comma, and the blanks between.

    The comma behind a leading element goes, and the one before any other, so that the array stays an array.
    """
    pieces: list[str] = []
    at = 0
    kept = False
    for index, (span, cut) in enumerate(zip(array, gone, strict=True)):
        if not cut:
            kept = True
            continue
        if kept:
            begin, end = array[index - 1].end, span.end
        else:
            begin, end = span.start, array[index + 1].start if index + 1 < len(array) else span.end
        begin = max(begin, at)
        pieces.append(text[at:begin])
        at = end
    return "".join(pieces) + text[at:]


def hide_tools(message: Message, hidden: Callable[[str], bool]) -> str | None:
    """The text of a tools/list answer without hidden tools and with a private cache scope; None when none is hidden.

    Raises FrameError when a reader could see another list than we do (wire rule 7).
    """
    result = message.members.get("result")
    if result is None or not isinstance(result.value, dict):
        return None
    inner = scan_members(message.text, result.start, _DECODER).members
    names = {"tools", "cacheScope", "nextCursor"}
    for member in inner:
        if member.key not in names and member.key.rstrip("\0").casefold() in {name.casefold() for name in names}:
            raise FrameError(f"a key of the result is {member.key!r}")
    table = {member.key: member for member in inner}
    tools = table.get("tools")
    if tools is None or not isinstance(tools.value, list):
        return None
    gone: list[bool] = []
    for tool in tools.value:
        if not isinstance(tool, dict):
            raise FrameError("an element of tools is no object")
        if any(key != "name" and key.rstrip("\0").casefold() == "name" for key in tool):
            raise FrameError("a tool has two names after case folding")
        name = tool.get("name")
        gone.append(isinstance(name, str) and hidden(name))
    if not any(gone):
        return None
    text = message.text
    scope = table.get("cacheScope")
    spans = elements(text, tools.start)
    if scope is None:
        return without(text, spans, gone)
    private = '"private"'
    if scope.start > tools.end:
        text = text[: scope.start] + private + text[scope.end :]
        return without(text, spans, gone)
    grown = len(private) - (scope.end - scope.start)
    text = text[: scope.start] + private + text[scope.end :]
    return without(text, [Span(span.start + grown, span.end + grown) for span in spans], gone)
