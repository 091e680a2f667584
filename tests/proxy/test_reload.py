"""A policy that is replaced while connections are open, and the line on which a supervisor asks for it."""

import asyncio
import json
import os
import socket
from pathlib import Path
from queue import SimpleQueue

import pytest

from proxy import vocabulary as v
from proxy.control import VARIABLE, ControlError, Governed, inherited, obey
from proxy.policy import PolicyError
from proxy.spans import JSON
from tests.proxy.httpupstream import WAIT, Request
from tests.proxy.httpwires import Client, through
from tests.proxy.wires import ALLOWING, EVIL, Wire, call, policy_of

HIDING = policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}], client_requests={"sampling": "deny"})


def written(folder: Path, **fields: JSON) -> str:
    path = folder / "policy.json"
    path.write_text(json.dumps(fields))
    return str(path)


def test_a_connection_over_http_is_judged_by_the_new_policy_from_its_next_call_on(tmp_path: Path) -> None:
    with through(tmp_path, ALLOWING) as (proxy, upstream), Client(proxy.port) as client:

        def ask(number: int) -> JSON:
            client.send("POST", "/mcp", call(id_text=str(number)).encode(), [(b"mcp-session-id", b"s")])
            return client.rest(client.head()).json

        assert ask(1) == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
        proxy.app.reload(written(tmp_path, rules=[{"deny": "mcp/x/evil"}]))
        assert "refused" in json.dumps(ask(2))
        proxy.app.reload(None)
        assert ask(3) == {"jsonrpc": "2.0", "id": 3, "result": {"content": []}}
        assert len(upstream.requests) == 2
        assert proxy.app.asking.seats.calls == 3
        client.close()
        opened = proxy.spans("connection_opened")
    assert len(opened) == 1


def test_a_policy_that_cannot_be_read_leaves_the_old_one_in_force(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        with pytest.raises(PolicyError, match=r"rules\[0\].deny"):
            proxy.app.reload(written(tmp_path, rules=[{"deny": "evil"}]))
        assert "refused" in json.dumps(proxy.post(call()).json)
        assert upstream.requests == []


def test_a_stream_that_is_open_already_is_edited_by_a_policy_that_comes_later(tmp_path: Path) -> None:
    asking = b'data: {"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}\n\n'
    streams: list[Request] = []
    refusals: SimpleQueue[bytes] = SimpleQueue()

    def handler(request: Request) -> None:
        if json.loads(request.body).get("method") == "tools/call":
            streams.append(request)
            request.stream(b": open\n\n")
        else:
            request.answer(b"", "202 Accepted")
            refusals.put(request.body)

    with through(tmp_path, ALLOWING, handler) as (proxy, _), Client(proxy.port) as client:
        client.send("POST", "/mcp", call("plain").encode(), [(b"accept", b"text/event-stream")])
        client.head()
        client.until(b": open")
        streams[0].chunk(asking)
        assert b"sampling" in client.until(b"sampling")
        proxy.app.reload(written(tmp_path, client_requests={"sampling": "deny"}))
        streams[0].chunk(asking.replace(b":7,", b":8,"))
        streams[0].chunk(b'data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n\n')
        streams[0].end()
        rest = client.until(b'"id":1')
        assert b"sampling" not in rest
        refused = json.loads(refusals.get(timeout=WAIT))
        assert (refused["id"], refused["error"]["code"]) == (8, 10001)
        assert proxy.post('{"jsonrpc":"2.0","method":"notifications/initialized"}').status == 202


def test_lines_of_a_server_are_held_whole_once_a_policy_may_edit_them(tmp_path: Path) -> None:
    wire = Wire(tmp_path, ALLOWING)
    wire.negotiate("2025-11-25")
    wire.client('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    wire.relay.adopt(HIDING)
    tools = [{"name": name, "description": "x" * 70_000} for name in ("plain", "evil")]
    wire.server(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}))
    (answer,) = wire.to_client.splitlines()
    assert [tool["name"] for tool in json.loads(answer)["result"]["tools"]] == ["plain"]
    wire.end()


def test_a_connection_that_is_opened_after_a_reload_has_the_new_policy(tmp_path: Path) -> None:
    with through(tmp_path) as (proxy, upstream):
        proxy.app.reload(written(tmp_path, rules=[{"deny": "mcp/x/evil"}]))
        assert "refused" in json.dumps(proxy.post(call()).json)
        assert upstream.requests == []
        (decision,) = proxy.spans("decision")
    assert decision.attributes[v.DECISION] == "deny"


@pytest.mark.parametrize("text", ["", "x", "-1", "99999", "9" * 30, "²"])
def test_what_is_no_line_of_a_supervisor_is_told_by_the_name_of_its_variable(text: str) -> None:
    with pytest.raises(ControlError, match=VARIABLE):
        inherited({VARIABLE: text})


def test_a_pipe_is_no_line_of_a_supervisor() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(ControlError, match=VARIABLE):
            inherited({VARIABLE: str(reading)})
    finally:
        os.close(reading)
        os.close(writing)
    assert inherited({}) is None


def test_a_supervisor_gets_an_answer_to_each_order_and_the_proxy_ends_when_it_lets_go() -> None:
    said: list[str | None] = []

    def reload(path: str | None) -> None:
        said.append(path)
        if path == "broken":
            raise ValueError("it is broken")

    async def orders() -> list[JSON]:
        ours, theirs = socket.socketpair()
        obeying = asyncio.create_task(obey(theirs, Governed(reload, lambda: {"calls": 2}, said.append)))
        reader, writer = await asyncio.open_connection(sock=ours)
        answers: list[JSON] = []
        for number, order in enumerate(({"reload": "file"}, {"reload": "broken"}, "health", {"do": "what"})):
            writer.write(json.dumps({"number": number, "order": order}).encode() + b"\n")
            told = json.loads(await reader.readline())
            assert told["number"] == number
            answers.append(told["answer"])
        writer.close()
        await writer.wait_closed()
        await obeying
        return answers

    assert asyncio.run(orders()) == [{}, {"error": "it is broken"}, {"calls": 2}, {"error": "no such order"}]
    assert said == ["file", "broken", "supervisor_ended"]
