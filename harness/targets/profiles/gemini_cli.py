"""Gemini CLI: `gemini --output-format stream-json` (geminicli.com/docs/cli/headless).

Refuses to know what its tools do. Seen of version 0.61.0.
"""

import json
from collections.abc import Mapping

from harness.targets.profiles.launch import Given, Launch, Tokens, Told, count, events, without
from proxy.spans import JSON

PROGRAM = "gemini"


def launch(given: Given) -> Launch:
    """A home of its own with our servers and nothing else, so that the key has to come from the environment.

    Its file of system settings would keep the person's own home, but is not read below a folder such as /tmp.
    """
    home = given.folder / "gemini"
    names = [word for server in given.servers for word in ("--allowed-mcp-server-names", server)]
    return Launch(
        ("--output-format", "stream-json", "--skip-trust", *names),
        {"GEMINI_CLI_HOME": str(home)},
        {home / ".gemini" / "settings.json": settings(given)},
    )


def settings(given: Given) -> str:
    """The settings.json: our servers, whose tools need no leave, and nothing that would go out to be counted."""
    servers: dict[str, JSON] = {
        server: {**({"httpUrl": start.url} if start.url else start.as_config()), "trust": True}
        for server, start in given.servers.items()
    }
    rest: dict[str, JSON] = {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    if "GEMINI_API_KEY" in given.ours:
        # With a base URL in the environment too, it would not find out by itself.
        rest["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    return json.dumps({"mcpServers": servers, **rest}, indent=2) + "\n"


def read(output: str) -> Told:
    """What the assistant said, its pieces put together; the tokens are those of the `result`."""
    said: list[str] = []
    open_ended = failed = known = False
    tokens: Tokens | None = None
    model: str | None = None
    for event in events(output):
        match event:
            case {"type": "message", "role": "assistant", "content": str(content)}:
                known = True
                if open_ended and event.get("delta") is True:
                    said[-1] += content
                else:
                    said.append(content)
                open_ended = event.get("delta") is True
                continue
            case {"type": "result"}:
                known = True
                failed = event.get("status") == "error"
                stats = event.get("stats")
                tokens = _tokens(stats) if isinstance(stats, dict) else None
            case {"type": "init", "model": str(name)}:
                known, model = True, name
            case {"type": "init" | "message" | "tool_use" | "tool_result"}:
                known = True
        open_ended = False
    return Told(tuple(said), tokens, failed, known, model)


def _tokens(stats: Mapping[str, JSON]) -> Tokens:
    cached = count(stats.get("cached"))
    return Tokens(without(count(stats.get("input_tokens")), cached), cached, count(stats.get("output_tokens")))
