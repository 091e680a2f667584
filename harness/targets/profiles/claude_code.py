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

    The usage of a single message is that of its beginning, so only its number is taken: a message may be several lines.
    """
    said: list[str] = []
    messages: set[str] = set()
    tokens: Tokens | None = None
    failed = known = False
    for event in events(output):
        match event:
            case {"type": "assistant", "message": {"content": list(content), **message}}:
                known = True
                if isinstance(identity := message.get("id"), str):
                    messages.add(identity)
                if event.get("parent_tool_use_id") is None:
                    said += _texts(content)
            case {"type": "result"}:
                known = True
                failed = event.get("is_error") is True
                tokens = _tokens(event.get("usage"))
                result = event.get("result")
                if isinstance(result, str) and result and said[-1:] != [result]:
                    said.append(result)
            case {"type": "system" | "user"}:
                known = True
    return Told(tuple(said), tokens, len(messages) if tokens is not None else None, failed, known)


def _texts(content: list[JSON]) -> list[str]:
    found: list[str] = []
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                found.append(text)
    return found


def _tokens(usage: JSON) -> Tokens | None:
    if not isinstance(usage, dict):
        return None
    fresh = total(count(usage.get("input_tokens")), count(usage.get("cache_creation_input_tokens")))
    return Tokens(fresh, count(usage.get("cache_read_input_tokens")), count(usage.get("output_tokens")))
