"""The third-party servers that tests put the proxy in front of: how each starts, and calls whose answers do not change.

Refuses to know clients and the proxy.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from proxy.spans import JSON
from tests.peers.places import NPM, node_script, program


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    tool: str
    arguments: dict[str, JSON]


@dataclass(frozen=True, slots=True)
class Stand:
    """A server over a folder of its own; `environment` is added to ours."""

    command: tuple[str, ...]
    calls: tuple[Call, ...]
    environment: dict[str, str] = field(default_factory=dict)


SERVERS = {"time": "servers", "git": "servers", "filesystem": NPM, "memory": NPM, "everything": NPM}
"""Servers by our name, and the peer that each is of."""

SPOKEN = (*((name, "legacy") for name in SERVERS), ("time", "2026-07-28"), ("git", "2026-07-28"))
"""Servers with each mode of the SDK's client that they speak."""


def stand(name: str, folder: Path) -> Stand:
    """A server over `folder`, which is emptied first, so that the same calls find the same things each time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    calls: tuple[Call, ...]
    match name:
        case "time":
            calls = (
                Call("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
                Call("convert_time", {"source_timezone": "UTC", "time": "noon", "target_timezone": "Asia/Tokyo"}),
            )
            return Stand((program("servers", "mcp-server-time"),), calls)
        case "git":
            make_repository(folder)
            path: dict[str, JSON] = {"repo_path": str(folder)}
            calls = (
                Call("git_status", path),
                Call("git_log", {**path, "max_count": 5}),
                Call("git_show", {**path, "revision": "HEAD"}),
                Call("git_show", {**path, "revision": "no-such-revision"}),
            )
            return Stand((program("servers", "mcp-server-git"),), calls)
        case "filesystem":
            note = str(folder / "note.txt")
            calls = (
                Call("write_file", {"path": note, "content": "dear\u2028reader, \U0001f4ee \u00e9\n"}),
                Call("read_text_file", {"path": note}),
                Call("list_directory", {"path": str(folder)}),
                Call("read_text_file", {"path": "/nowhere/else.txt"}),
            )
            return Stand(("node", node_script("server-filesystem"), str(folder)), calls)
        case "memory":
            entity: JSON = {"name": "Ada", "entityType": "person", "observations": ["counts wires"]}
            calls = (
                Call("create_entities", {"entities": [entity]}),
                Call("search_nodes", {"query": "wires"}),
                Call("read_graph", {}),
            )
            file = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
            return Stand(("node", node_script("server-memory")), calls, file)
        case "everything":
            calls = (
                Call("echo", {"message": 'a \u00df \\ " \u2028'}),
                Call("get-sum", {"a": 2, "b": 40.5}),
                Call("get-tiny-image", {}),
                Call("get-structured-content", {"location": "Chicago"}),
                Call("get-sum", {"a": "two", "b": 3}),
            )
            return Stand(("node", node_script("server-everything"), "stdio"), calls)
        case _:
            raise ValueError(f"there is no server {name!r}")


def make_repository(folder: Path) -> None:
    """A git repository of two commits whose ids are always the same."""
    who = {
        f"GIT_{role}_{part}": text
        for role in ("AUTHOR", "COMMITTER")
        for part, text in (("NAME", "A Writer"), ("EMAIL", "writer@example.com"), ("DATE", "2026-01-02T03:04:05Z"))
    }
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

    git("init", "--quiet", "--initial-branch=main")
    for number, text in enumerate(("first\n", "second\n"), 1):
        (folder / "page.txt").write_text(text, encoding="utf-8")
        git("add", "page.txt")
        git("commit", "--quiet", "--message", f"Page {number}")
    (folder / "new.txt").write_text("not yet added\n", encoding="utf-8")
