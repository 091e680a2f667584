"""A program with the manners of `codex exec`: its servers from a config.toml, the task on stdin, events on stdout.

As it ends it sends each server's group SIGTERM and the server SIGKILL at once, as Codex does. With `fails` as its first
argument its model fails, and it ends with exit code 0 all the same.
"""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

task = sys.stdin.read()
home = Path(os.environ["CODEX_HOME"])
login = (home / "auth.json").read_text() if (home / "auth.json").exists() else "none"
servers = tomllib.loads((home / "config.toml").read_text())["mcp_servers"]


def tell(event: dict[str, object]) -> None:
    print(json.dumps(event), flush=True)


def message(text: str) -> dict[str, object]:
    return {"type": "item.completed", "item": {"type": "agent_message", "text": text}}


tell({"type": "thread.started", "thread_id": "1"})
entry = servers["echo"]
server = subprocess.Popen(
    [entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0,
    env={**os.environ, **entry["env"]},
)  # fmt: skip
assert server.stdin is not None
assert server.stdout is not None


def ask(number: int, method: str, params: dict[str, object]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
    )
    server.stdin.flush()
    server.stdout.readline()


client = {"name": "codex", "version": "1"}
ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
ask(2, "tools/call", {"name": "echo", "arguments": {"text": task}})
tell(message(f"I was told: {task} Login: {login}"))
if "fails" in sys.argv[1:2]:
    tell({"type": "turn.failed", "error": {"message": "overloaded"}})
else:
    tell({"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2}})
os.killpg(server.pid, signal.SIGTERM)
server.kill()
