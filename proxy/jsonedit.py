"""Replace parts of a text, so that JSON stays JSON: literals stay whole, and so do JSON texts inside them.

Refuses to know why a part is replaced; a text that is no JSON is only kept from broken escapes.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from proxy.disguise import ESCAPES, LEVELS, lowered, raised, widened

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_BARE = r"-?(?:[0-9][0-9.eE+-]*+|Infinity)|true|false|null|NaN"
_LITERAL = re.compile(rf"{_STRING}|{_BARE}", re.DOTALL)
_JSON = re.compile(rf"(?:[ \t\r\n{{}}\[\],:]++|{_STRING}|{_BARE})*+", re.DOTALL)


class Edit(NamedTuple):
    """What comes in the place of `start:end`."""

    start: int
    end: int
    text: str


def merged(edits: Sequence[Edit]) -> list[Edit]:
    """The edits in order, with those that overlap made one: the text is that of the longest."""
    found: list[Edit] = []
    longest = 0
    for edit in sorted(edits):
        length = edit.end - edit.start
        if not found or edit.start >= found[-1].end:
            found.append(edit)
            longest = length
            continue
        last = found[-1]
        text = edit.text if length > longest else last.text
        longest = max(longest, length)
        found[-1] = Edit(last.start, max(last.end, edit.end), text)
    return found


def fitted(text: str, edits: Sequence[Edit], depth: int = 0) -> list[Edit]:
    """The edits, each a plain word in the place of something, made such that JSON stays JSON; in order, none overlaps.

    Where an edit reaches over literals, each is edited for itself; in the place of a number, or of a whole object,
    comes a string. An edit of punctuation alone goes away.
    """
    edits = merged(edits)
    if depth <= LEVELS and (not depth or text.lstrip(" \t\r\n")[:1] in ("{", "[")) and _JSON.fullmatch(text):
        return _in_json(text, edits, depth)
    ranges = widened(text, [(edit.start, edit.end) for edit in edits])
    return merged([Edit(start, end, edit.text) for (start, end), edit in zip(ranges, edits, strict=True)])


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text with the edits made; they are in order and none overlaps."""
    pieces: list[str] = []
    done = 0
    for edit in edits:
        pieces += (text[done : edit.start], edit.text)
        done = edit.end
    pieces.append(text[done:])
    return "".join(pieces)


def _is_value(text: str) -> bool:
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_json(text: str, edits: list[Edit], depth: int) -> list[Edit]:
    found: list[Edit] = []
    waiting = iter(edits)
    edit = next(waiting, None)
    begun = False
    whole_until = 0
    for match in _LITERAL.finditer(text):
        start, end = match.span()
        inside: list[Edit] = []
        while edit is not None and edit.start < end:
            if not begun and edit.start < start < edit.end and _is_value(text[edit.start : edit.end]):
                found.append(Edit(edit.start, edit.end, f'"{edit.text}"'))
                whole_until = edit.end
            begun = True
            if edit.end > start >= whole_until:
                inside.append(edit)
            if edit.end > end:
                break
            edit = next(waiting, None)
            begun = False
        if inside:
            found += _in_literal(text, start, end, inside, depth)
        if edit is None:
            break
    return found


def _in_literal(text: str, start: int, end: int, edits: list[Edit], depth: int) -> Iterator[Edit]:
    if text[start] != '"':
        yield Edit(start, end, f'"{edits[0].text}"')
        return
    first, body = start + 1, text[start + 1 : end - 1]
    parts = [Edit(max(e.start - first, 0), min(e.end - first, len(body)), e.text) for e in edits]
    parts = [part for part in parts if part.start < part.end]
    if not parts:
        return
    if "\\" not in body and body[:1] not in ("{", "["):
        yield from (Edit(first + part.start, first + part.end, part.text) for part in parts)
        return
    plain = ESCAPES.pattern.sub(ESCAPES.undo, body)
    lower = lowered(body, ESCAPES, [(part.start, part.end) for part in parts])
    inner = fitted(plain, [Edit(*place, part.text) for place, part in zip(lower, parts, strict=True)], depth + 1)
    upper = raised(body, ESCAPES, [(part.start, part.end) for part in inner])
    for (low, high), part in zip(upper, inner, strict=True):
        escaped = part.text.replace("\\", "\\\\").replace('"', '\\"')
        yield Edit(first + low, first + high, escaped)
