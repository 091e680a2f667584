"""Calls of tools and their answers as nearly every client and server spells them, read in one pass.

Refuses to know policy and what is recorded. What it does not take has the careful reading, which gives the same.
"""

import re
from typing import NamedTuple, TypeAlias

from proxy.frames import QUICK
from proxy.ids import IdKey
from proxy.keys import PROTOTYPE
from proxy.members import LOOSE, STRICT, scanner
from proxy.spans import JSON

_ID = r'([1-9][0-9]{0,17}|"[^"\\\x00-\x1f]*")'
_WHO = rf'"jsonrpc": ?"2\.0", ?"id": ?{_ID}'
# Either the id comes first or it comes last; a key is spelled in full and stands once, so there is one reading.
_CALL = re.compile(
    rf'\{{(?:{_WHO}, ?)?"method": ?"tools/call", ?"params": ?'
    r'\{(?:"_meta": ?(\{)|"name": ?"([^"\\\x00-\x1f]+)", ?"arguments": ?)'
)
_NAMED = re.compile(r', ?"name": ?"([^"\\\x00-\x1f]+)", ?"arguments": ?')
_META = re.compile(r', ?"_meta": ?\{')
_CALLED = re.compile(rf"\}}(?:, ?{_WHO})?\}}\n")
# Arguments that hold no more than texts, short numbers and names: they have one reading unless a key comes twice.
_TEXT = r'"[^"\\\x00-\x1f]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?+(?:[eE][-+]?[0-9]{1,2})?+"
_MEMBER = rf'"(?!{PROTOTYPE}")[^"\\\x00-\x1f]*+": ?(?:{_TEXT}|{_NUMBER}|true|false|null)'
_FLAT = re.compile(
    rf'\{{(?:{_WHO}, ?)?"method": ?"tools/call", ?"params": ?\{{"name": ?"([^"\\\x00-\x1f]++)", ?"arguments": ?'
    rf"(\{{(?:{_MEMBER}((?:, ?{_MEMBER})*+))?+\}})\}}(?:, ?{_WHO})?\}}\n"
)
_KEYS = re.compile(rf'("[^"\\\x00-\x1f]*+"): ?(?:{_TEXT}|[^,]++)')
_RESULT = re.compile(rf'\{{(?:{_WHO}, ?)?"result": ?')
_ANSWERED = re.compile(rf"(?:, ?{_WHO})?\}}\n")

_OPENED = 256
"""Braces and brackets in a line that may be nested deep: how deep is read depends on the way (Python's own limit)."""

_strictly, _loosely = scanner(STRICT), scanner(LOOSE)


PlainCall: TypeAlias = tuple[str, IdKey, str, str, dict[str, JSON] | None]
"""A call of a tool: its id's text and key, the tool, the exact text of the arguments, and `_meta`. Bare, since a
client waits meanwhile.
"""


class PlainAnswer(NamedTuple):
    """An answer that is a result: its id's key, the exact text of the result, and that."""

    key: IdKey
    text: str
    result: JSON


def plain_arguments(text: str) -> JSON:
    """The arguments of a plain call, from their text."""
    return _strictly(text, 0)[0]


def id_key(text: str) -> IdKey:
    """The typed key of an id of the plain spelling."""
    return ("s", text[1:-1]) if text[0] == '"' else ("n", int(text))


def _may_be_deep(raw: bytes) -> bool:
    return raw.count(b"[") + raw.count(b"{") > _OPENED


def _repeats(flat: str) -> bool:
    """Whether a key of a flat object comes twice."""
    keys = _KEYS.findall(flat)
    return len(set(keys)) != len(keys)


def plain_call(raw: bytes) -> PlainCall | None:
    """The call that a line of the client is; None where it is none, or a careful look is needed.

    Such a look is needed for escapes of letters, a carriage return, another message inside, any key repeated, and what
    may be nested deep.
    """
    if len(raw) > QUICK or raw.lower().count(b"method") != 1:
        return None
    try:
        text = raw.decode()
        flat = _FLAT.fullmatch(text)
        if flat is not None:
            before, name, given, more, after = flat.groups()
            if (before is None) == (after is None) or (more and _repeats(given)):
                return None
            id_text = before or after
            return id_text, id_key(id_text), name, given, None
        opened = None if _may_be_deep(raw) or b"\r" in raw or b"\\u" in raw else _CALL.match(text)
        if opened is None:
            return None
        before, meta_first, name = opened.groups()
        at = opened.end()
        meta: JSON = None
        if meta_first is not None:
            meta, at = _strictly(text, at - 1)
            named = _NAMED.match(text, at)
            if named is None:
                return None
            name, at = named[1], named.end()
        _, end = _strictly(text, at)
        given = text[at:end]
        if meta_first is None and (behind := _META.match(text, end)) is not None:
            meta, end = _strictly(text, behind.end() - 1)
        closed = _CALLED.fullmatch(text, end)
    except (StopIteration, ValueError, RecursionError):
        return None
    if closed is None:
        return None
    after = closed[1]
    if (before is None) == (after is None):
        return None
    id_text = before or after
    return id_text, id_key(id_text), name, given, meta if isinstance(meta, dict) else None


def plain_answer(raw: bytes) -> PlainAnswer | None:
    """The answer that a line of the server is; None where it is none, or a careful look is needed."""
    if len(raw) > QUICK or _may_be_deep(raw):
        return None
    text = raw.decode("utf-8", "surrogateescape")
    opened = _RESULT.match(text)
    if opened is None:
        return None
    try:
        at = opened.end()
        result, end = _loosely(text, at)
    except (StopIteration, ValueError, RecursionError):
        return None
    closed = _ANSWERED.fullmatch(text, end)
    if closed is None:
        return None
    before, after = opened[1], closed[1]
    if (before is None) == (after is None):
        return None
    return PlainAnswer(id_key(before or after), text[at:end], result)
