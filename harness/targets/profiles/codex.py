"""Codex: `codex exec --json` (developers.openai.com/codex, "Non-interactive mode").

Refuses to know what its tools do. Seen of version 0.171.0.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from harness.targets.profiles.launch import Given, Launch, Start, Tokens, Told, count, events, total, without
from proxy.spans import JSON

PROGRAM = "codex"


def launch(given: Given) -> Launch:
    """A home of its own with our servers and nothing else; only the login of the person's own home is in it."""
    home = given.folder / "codex"
    own = given.ours.get("CODEX_HOME") or str(Path(given.ours.get("HOME") or "/", ".codex"))
    return Launch(
        # Last the task, from standard input.
        ("exec", "--json", "--skip-git-repo-check", "--ephemeral", "-"),
        {"CODEX_HOME": str(home)},
        {home / "config.toml": configuration(given)},
        {home / "auth.json": Path(own, "auth.json").absolute()},
    )


def configuration(given: Given) -> str:
    """The config.toml: it waits for each server, whose tools need no leave.

    As it ends it sends its servers SIGTERM, and SIGKILL some milliseconds later, so they are started apart from it.
    """
    parts = ["check_for_update_on_startup = false\n"]
    for server, start in given.servers.items():
        parts.append(
            f"\n[mcp_servers.{text(server)}]\n"
            f"{_reached(given, start)}\n"
            "required = true\n"
            "startup_timeout_sec = 30\n"
            'default_tools_approval_mode = "approve"\n'
        )
    return "".join(parts)


def _reached(given: Given, start: Start) -> str:
    if start.url:
        return f"url = {text(start.url)}"
    program, *arguments = (*given.apart, *start.command)
    said = f"command = {text(program)}\nargs = [{', '.join(map(text, arguments))}]"
    return f"{said}\nenv = {{{_pairs(start.environment)}}}"


def text(value: str) -> str:
    """A text as a basic string of TOML, which is JSON's but for U+007F (toml.io/en/v1.0.0#string)."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{text(name)} = {text(value)}" for name, value in values.items())


def read(output: str) -> Told:
    """Its `agent_message` items; the tokens are summed up over its turns, and input counts what came from the cache."""
    said: list[str] = []
    tokens: Tokens | None = None
    failed = known = False
    for event in events(output):
        match event:
            case {"type": "item.completed", "item": {"type": "agent_message", "text": str(message)}}:
                known = True
                said.append(message)
            case {"type": "turn.completed"}:
                known, failed = True, False
                tokens = _added(tokens, event.get("usage"))
            case {"type": "turn.failed"}:
                known, failed = True, True
            case {"type": "thread.started" | "turn.started" | "item.started" | "item.updated" | "item.completed"}:
                known = True
    return Told(tuple(said), tokens, failed, known)


def _added(before: Tokens | None, usage: JSON) -> Tokens | None:
    if not isinstance(usage, dict):
        return before
    cached = count(usage.get("cached_input_tokens"))
    fresh = without(count(usage.get("input_tokens")), cached)
    out = count(usage.get("output_tokens"))
    if before is None:
        return Tokens(fresh, cached, out)
    return Tokens(total(before.fresh, fresh), total(before.cached, cached), total(before.out, out))
