"""What a tools/call sent beside its name and arguments, such as `_meta`: it reaches the server as well as they do.

Refuses to know spans and traces.
"""

import json

from proxy.spans import JSON

_SIGNS = ('"_meta"', '"inputResponses"', '"requestState"', '"task"', "\\u")
"""Signs that a frame may hold more than name and arguments; an escape may hide any of them."""
_COUNTED = 10**6
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})


def beside(request: str | None) -> str | None:
    """The JSON text of a frame's params without name and arguments; None where that says nothing.

    A progress token that is a small number says nothing: most clients count their calls there.
    """
    if request is None or not any(sign in request for sign in _SIGNS):
        return None
    return rest_of(request)


def rest_of(request: str) -> str | None:
    """The same of any frame, without a look at whether it is worth while."""
    try:
        frame: JSON = json.loads(request)
    except (ValueError, RecursionError):
        return None
    params = frame.get("params") if isinstance(frame, dict) and frame.get("method") == "tools/call" else None
    if not isinstance(params, dict):
        return None
    rest = {key: value for key, value in params.items() if key not in ("name", "arguments")}
    meta = rest.get("_meta")
    if isinstance(meta, dict) and isinstance(token := meta.get("progressToken"), int) and abs(token) < _COUNTED:
        rest["_meta"] = {key: value for key, value in meta.items() if key != "progressToken"}
    if rest in ({}, {"_meta": {}}):
        return None
    return json.dumps(rest)


def has_one_reading(request: str) -> bool:
    """Whether every reader makes the same of a frame: one object with no member twice, case apart, and none unknown."""

    def once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        if len({key.strip("\0 \t\r\n").casefold() for key, _ in pairs}) < len(pairs):
            raise ValueError("a member stands twice")
        return dict(pairs)

    try:
        frame: JSON = json.loads(request, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return False
    return isinstance(frame, dict) and frame.keys() <= _MEMBERS


def is_telling(text: str | None) -> bool:
    """Whether a JSON text holds a letter or a digit: `{}` does not."""
    return text is not None and any(letter.isalnum() for letter in text)
