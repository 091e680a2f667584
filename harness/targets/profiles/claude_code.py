"""Claude Code: `claude -p --output-format stream-json` (code.claude.com/docs, "Run Claude Code programmatically").

Refuses to know what its tools do. Seen of version 2.1.332.
"""

import re

from harness.targets.profiles.launch import Given, Launch, Tokens, Told, count, events, total
from proxy.spans import JSON

PROGRAM = "claude"


def launch(given: Given) -> Launch:
    """No servers but ours, whose tools need no leave; its own tools keep the permissions that they have."""
    arguments = ["-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"]
    arguments += ["--mcp-config", str(given.mcp_config), "--strict-mcp-config"]
    if given.servers:
        # In names of tools it replaces what no API takes.
        names = (re.sub(r"[^a-zA-Z0-9_-]", "_", server) for server in given.servers)
        arguments += ["--allowedTools", ",".join(f"mcp__{name}" for name in names)]
    return Launch(tuple(arguments))


def read(output: str) -> Told:
    """Texts of the assistant, those of its subagents left out; the tokens are those of the `result`.

    The usage that stands in a message is that of its beginning, so it is not taken.
    """
    said: list[str] = []
    tokens: Tokens | None = None
    model: str | None = None
    failed = known = False
    for event in events(output):
        match event:
            case {"type": "assistant", "message": {"content": list(content)}}:
                known = True
                if event.get("parent_tool_use_id") is None:
                    said += _texts(content)
            case {"type": "result"}:
                known = True
                failed = event.get("is_error") is True
                tokens = _tokens(event)
                model = _model(event)
                result = event.get("result")
                if isinstance(result, str) and result and said[-1:] != [result]:
                    said.append(result)
            case {"type": "system" | "user"}:
                known = True
    return Told(tuple(said), tokens, failed, known, model)


def _texts(content: list[JSON]) -> list[str]:
    found: list[str] = []
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                found.append(text)
    return found


def _tokens(result: dict[str, JSON]) -> Tokens | None:
    """Those of every model that it used, subagents' too; `usage`, where there is nothing else, has the main one's."""
    match result:
        case {"modelUsage": dict(models)} if models:
            used = [model for model in models.values() if isinstance(model, dict)]
            names = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
            fresh, written, cached, out = (total(*(count(one.get(name)) for one in used)) for name in names)
        case {"usage": dict(usage)}:
            names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
            fresh, written, cached, out = (count(usage.get(name)) for name in names)
        case _:
            return None
    return Tokens(total(fresh, written), cached, out)


def _model(result: dict[str, JSON]) -> str | None:
    """The one model that it used; of several their tokens stand together, and have no one price."""
    match result:
        case {"modelUsage": dict(models)} if len(models) == 1:
            return next(iter(models))
        case _:
            return None
