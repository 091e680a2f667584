"""What the three agents printed in runs of `make test-clients`, cut down to the members that matter here.

`{name: lines}`; the lines are JSON, or what an agent writes between.
"""

import json

from proxy.spans import JSON


def lines(*events: dict[str, JSON] | str) -> str:
    return "".join(f"{event if isinstance(event, str) else json.dumps(event)}\n" for event in events)


def _assistant(identity: str, part: dict[str, JSON], parent: str | None = None, model: str = "m") -> dict[str, JSON]:
    usage: JSON = {"input_tokens": 90, "cache_read_input_tokens": 40, "output_tokens": 1}
    message: JSON = {"id": identity, "role": "assistant", "model": model, "content": [part], "usage": usage}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


_CALL: dict[str, JSON] = {"type": "tool_use", "id": "t", "name": "mcp__ticketing__get_ticket", "input": {}}
_RESULT: JSON = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "{}"}]}

CLAUDE_CODE = lines(
    {"type": "system", "subtype": "init", "tools": ["Bash"], "mcp_servers": [{"name": "ticketing"}]},
    _assistant("m1", {"type": "text", "text": "I look."}),
    _assistant("m1", _CALL),
    {"type": "user", "message": _RESULT, "parent_tool_use_id": None},
    _assistant("m2", {"type": "text", "text": "A subagent's."}, parent="t"),
    _assistant("m3", {"type": "text", "text": "Ticket 1 is about a server."}),
    {
        "type": "result", "subtype": "success", "is_error": False, "result": "Ticket 1 is about a server.",
        "usage": {"input_tokens": 180, "cache_read_input_tokens": 80, "output_tokens": 14},
        "modelUsage": {
            "m": {"inputTokens": 180, "cacheCreationInputTokens": 5, "cacheReadInputTokens": 80, "outputTokens": 14},
            "small": {"inputTokens": 90, "cacheReadInputTokens": 40, "outputTokens": 7},
        },
    },
)  # fmt: skip
CLAUDE_CODE_FAILED = lines(
    {"type": "system", "subtype": "init"},
    _assistant("x", {"type": "text", "text": "API Error: 400 no such model"}, model="<synthetic>"),
    {
        "type": "result", "subtype": "success", "is_error": True, "result": "API Error: 400 no such model",
        "usage": {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                  "output_tokens": 0},
        "modelUsage": {},
    },
)  # fmt: skip

_ITEM: JSON = {"id": "item_1", "type": "mcp_tool_call", "server": "ticketing", "tool": "get_ticket", "arguments": {}}
_USAGE: JSON = {"input_tokens": 390, "cached_input_tokens": 120, "output_tokens": 21, "reasoning_output_tokens": 0}
CODEX = lines(
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found"}},
    {"type": "turn.started"},
    {"type": "item.started", "item": _ITEM},
    {"type": "item.completed", "item": _ITEM},
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "I looked."}},
    {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": "It is about a server."}},
    {"type": "turn.completed", "usage": _USAGE},
)
CODEX_FAILED = lines(
    {"type": "thread.started", "thread_id": "t"},
    {"type": "turn.started"},
    {"type": "error", "message": "no such model"},
    {"type": "turn.failed", "error": {"message": "no such model"}},
)

_STATS: JSON = {"total_tokens": 411, "input_tokens": 390, "output_tokens": 21, "cached": 120, "input": 270}
GEMINI_CLI = lines(
    "Loaded cached credentials.",
    {"type": "init", "session_id": "s", "model": "auto"},
    {"type": "message", "role": "user", "content": "What is ticket 1 about?"},
    {"type": "message", "role": "assistant", "content": "I lo", "delta": True},
    {"type": "message", "role": "assistant", "content": "ok.", "delta": True},
    {"type": "tool_use", "tool_name": "mcp_ticketing_get_ticket", "tool_id": "t", "parameters": {}},
    {"type": "tool_result", "tool_id": "t", "status": "success", "output": "{}"},
    {"type": "message", "role": "assistant", "content": "It is about a server.", "delta": True},
    {"type": "result", "status": "success", "stats": _STATS},
)
GEMINI_CLI_FAILED = lines(
    {"type": "init", "session_id": "s", "model": "m"},
    {"type": "result", "status": "error", "error": {"type": "unknown", "message": "no such model"},
     "stats": {"total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0, "input": 0}},
)  # fmt: skip
