"""The answers that are the proxy's own, each marked so that no one takes it for the server's.

Refuses to know why a call is refused beyond the sentence it is given.
"""

import json

from proxy.spans import JSON

DENIED = 10001
NOT_READABLE = 10002
SERVER_ENDED = 10003
RECORDER_FAILED = 10004
"""Codes of our refusals: positive, outside every range that JSON-RPC and MCP reserve (design section 4)."""

REFUSAL_KEY = "io.wiretrap/refusal"
"""Where `_meta` of a result carries our mark; an error carries it in `data.wiretrap`."""


def _mark(code: int, reason: str, rule: str) -> dict[str, JSON]:
    mark: dict[str, JSON] = {"code": code, "reason": reason}
    if rule:
        mark["rule"] = rule
    return mark


def tool_error(id_text: str, code: int, said: str, rule: str = "", *, reason: str = "", modern: bool) -> str:
    """An isError result with the sentence `said` to the model; `id_text` is the request's id as it crossed the wire.

    The mark carries the bare `reason`, or the sentence where there is none.
    In the era of 2026-07-28 (`modern`) a result says that it is complete (design, wire rule 17).
    """
    result: dict[str, JSON] = {"content": [{"type": "text", "text": said}], "isError": True}
    if modern:
        result["resultType"] = "complete"
    result["_meta"] = {REFUSAL_KEY: _mark(code, reason or said, rule)}
    return f'{{"jsonrpc":"2.0","id":{id_text},"result":{json.dumps(result)}}}'


def error(id_text: str, code: int, said: str, rule: str = "", *, reason: str = "") -> str:
    """A JSON-RPC error; `id_text` is the request's id as it crossed the wire."""
    body = json.dumps({"code": code, "message": said, "data": {"wiretrap": _mark(code, reason or said, rule)}})
    return f'{{"jsonrpc":"2.0","id":{id_text},"error":{body}}}'
