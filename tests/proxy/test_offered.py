"""A deny rule that names a tool which the server does not list is told of, once."""

import json
from pathlib import Path

from proxy.offered import Offered
from tests.proxy.wires import Wire


def page(*names: str, **more: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": name} for name in names], **more}})


def test_a_rule_without_its_tool_is_told_of_once_behind_the_last_page() -> None:
    said: list[str] = []
    globs = ("mcp/x/there", "mcp/x/a%2Fb", "mcp/x/gone", "mcp/x/go*", "mcp/y/other", "mcp/x/prompt:p")
    offered = Offered("x", globs, said.append)
    offered.take(page("there", nextCursor="2"))
    assert said == []
    offered.take("no JSON")
    for _ in range(2):
        offered.take(page("a/b"))
    assert said == ["the server x lists no tool that these rules deny: mcp/x/gone"]


def test_the_list_that_passes_a_connection_is_looked_at(tmp_path: Path) -> None:
    said: list[str] = []
    wire = Wire(tmp_path)
    wire.relay.session.recorder.offered = Offered("x", ["mcp/x/gone"], said.append)
    wire.relay.from_client(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    wire.relay.from_server(page("there").encode() + b"\n")
    wire.relay.settle()
    assert said == ["the server x lists no tool that these rules deny: mcp/x/gone"]
