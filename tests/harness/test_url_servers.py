"""Servers of a scenario that run elsewhere: their proxies are there before the agent, and gone after it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.targets.client import Client, ClientError
from harness.targets.deadline import Deadline
from harness.targets.overhttp import HttpChannel
from proxy.spans import JSON
from tests.harness.runs import ECHOED, marked, run, write_scenario
from tests.proxy.httpupstream import Request, Upstream

TOOLS: JSON = [{"name": "echo", "inputSchema": {"type": "object"}}]
AGENT = """
import json, sys
from urllib.request import Request, urlopen

[url] = [entry["url"] for entry in json.load(open(sys.argv[1]))["mcpServers"].values()]
client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
for number, (method, params) in enumerate([("initialize", client), ("tools/call", {"name": "echo"})]):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    with urlopen(Request(url, json.dumps(message).encode(), headers)) as answer:
        headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        print(answer.read().decode())
"""


class Echo:
    """A server of the old era with sessions; calls are answered in a stream, in which it asks for a ping first."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, list[str]]] = []
        self.upstream = Upstream(self.handle)
        self.url = f"http://127.0.0.1:{self.upstream.port}/mcp"

    def handle(self, request: Request) -> None:
        message = json.loads(request.body) if request.body else {}
        method = message.get("method", "answer")
        self.requests.append((request.method, method, request.values("mcp-protocol-version")))
        match request.method, method:
            case "POST", "initialize":
                made = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "e"}}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": made}).encode()
                request.answer(body, headers="content-type: application/json\r\nmcp-session-id: s1")
            case "POST", "tools/list":
                listed = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": TOOLS}}, indent=1)
                request.answer(listed.encode())
            case "POST", "tools/call":
                text = json.dumps(message["params"].get("arguments"))
                result = {"content": [{"type": "text", "text": text}]}
                answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
                ping = b'data: {"jsonrpc":"2.0","id":"p","method":"ping"}\n\n'
                request.stream(ping, f"data: {answer}\n\n".encode(), headers="mcp-session-id: s1\r\n")
                request.end()
            case "DELETE", _:
                request.answer(b"", "200 OK")
            case _:
                request.answer(b"", "202 Accepted")


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    try:
        yield server
    finally:
        server.upstream.close()


STEPS: JSON = {
    "steps": [
        {"call": "mcp/echo/echo", "arguments": {"a": 1}, "as": "one"},
        {"call": "mcp/echo/echo", "arguments": {"b": "${one.json.a}"}},
        {"call": "mcp/echo/evil", "expect_error": True},
    ]
}


def test_a_scripted_agent_and_a_program_speak_http_through_proxies_that_are_gone_with_the_trial(
    tmp_path: Path, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = {"TRIAL_OF_A_URL": str(tmp_path)}
    for name, value in mark.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "agent.yaml").write_text(json.dumps(STEPS))
    servers: JSON = {"echo": {"url": echo.url, "trust": "internal"}}
    fields: dict[str, JSON] = {"servers": servers, "policy": {"rules": [{"deny": "mcp/echo/evil"}]}}
    state: JSON = {"type": "state", "server": "echo", "query": "select 1", "equals": [[1]]}
    wanted: JSON = [*ECHOED, {"type": "tool_called", "tool": "mcp/echo/echo", "arguments": {"b": 1}}, state]
    program: JSON = {"command": [sys.executable, "agent.py", "{mcp_config}"]}
    paths = [
        write_scenario(tmp_path, id="steps", agent={"scripted": "agent.yaml"}, assertions=wanted, **fields),
        write_scenario(tmp_path, id="program", agent=program, **fields),
    ]
    ran = run(paths, tmp_path, jobs=2)
    assert marked(mark) == []

    calls = ran.document("steps", "1", "trace.json")["tool_calls"]
    assert isinstance(calls, list)
    assert [(one["name"], one["outcome"], one["mcp_transport"]) for one in calls if isinstance(one, dict)] == [
        ("mcp/echo/echo", "ok", "http"),
        ("mcp/echo/echo", "ok", "http"),
        ("mcp/echo/evil", "denied", "http"),
    ]
    findings = ran.document("steps", "1", "verdict.json")["findings"]
    assert isinstance(findings, list)
    results = [(one["id"], one["result"]) for one in findings if isinstance(one, dict)]
    assert results == [("tool_called", "pass"), ("tool_called#2", "pass"), ("state", "not_run")]
    other = ran.document("program", "1", "verdict.json")
    assert (other["result"], other["gaps"], other["doubts"]) == ("pass", [], [])
    assert [versions for _, method, versions in echo.requests if method == "tools/call"].count(["2025-11-25"]) == 2
    assert [one[0] for one in echo.requests].count("DELETE") == 1


def test_two_agents_over_a_model_have_a_proxy_each_in_front_of_the_same_url(
    tmp_path: Path, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = {"MODELS_OF_A_URL": str(tmp_path)}
    for name, value in mark.items():
        monkeypatch.setenv(name, value)
    rules: JSON = [
        {"at_most": 1, "call": "echo", "arguments": {"a": 1}},
        {"when": {"offered": "hand_over"}, "call": "hand_over", "fill": True},
        {"say": "done"},
    ]
    (tmp_path / "script.yaml").write_text(json.dumps({"script": rules}))
    model: JSON = {"provider": "scripted", "script": "script.yaml"}
    peers: JSON = {"first": ["echo"], "second": ["echo"]}
    agent = tmp_path / "agent.yaml"
    agent.write_text(json.dumps({"model": model, "architecture": "peer_to_peer", "agents": peers}))
    servers: JSON = {"echo": {"url": echo.url, "trust": "internal"}}
    ran = run([write_scenario(tmp_path, id="peers", servers=servers)], tmp_path, agent=agent)
    assert marked(mark) == []
    verdict = ran.document("peers", "1", "verdict.json")
    assert (verdict["result"], verdict["gaps"], verdict["doubts"]) == ("pass", [], [])
    calls = ran.document("peers", "1", "trace.json")["tool_calls"]
    assert isinstance(calls, list)
    who = [(one["agent"], one["name"], one["mcp_transport"]) for one in calls if isinstance(one, dict)]
    assert who == [("first", "mcp/echo/echo", "http"), ("second", "mcp/echo/echo", "http")]


def answered(status: str, body: bytes = b"", kind: str = "application/json") -> str:
    """What a client says of a server that answers so."""
    upstream = Upstream(lambda request: request.answer(body, status, f"content-type: {kind}"))
    try:
        channel = HttpChannel("x", f"http://127.0.0.1:{upstream.port}/mcp", Deadline.after(10))
        with pytest.raises(ClientError) as caught:
            Client("x", channel).initialize()
        channel.abandon()
        return str(caught.value)
    finally:
        upstream.close()


def test_http_answers_without_a_message_are_told_by_their_status() -> None:
    assert answered("401 Unauthorized") == "server x answered with the HTTP status 401"
    assert answered("500 Oops", b"<html>", "text/html") == "server x answered with the HTTP status 500"
    assert answered("202 Accepted") == "server x ended its answer without one to the request"
    assert answered("200 OK", b": nothing\n\n", "text/event-stream") == (
        "server x ended its answer without one to the request"
    )
    refused = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}'
    assert answered("400 Bad Request", refused) == "server x: initialize was refused: no"
