import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp.server import Server, ServerRequestContext
from mcp.types import CallToolRequestParams, CallToolResult, TextContent

from harness.targets.client import Client, ServerEndedError
from harness.targets.deadline import Deadline, TimeUpError, TrialCancelledError
from harness.targets.eventloop import Loop
from harness.targets.inprocess import InProcessChannel
from proxy import __version__
from proxy.record import Identity
from proxy.relay import Relay
from proxy.spanfile import SpanFile


async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
    match params.name:
        case "hang":
            await anyio.sleep_forever()
        case "ask":
            roots = await context.session.list_roots()
            return CallToolResult(content=[TextContent(text=str(roots))])
    return CallToolResult(content=[TextContent(text=params.name)])


@pytest.fixture
def loop() -> Iterator[Loop]:
    one = Loop(Deadline.after(30))
    yield one
    one.close()


def connect(loop: Loop, folder: Path) -> Client:
    identity = Identity("x", "internal", "in_process", "c1")
    relay = Relay(identity, None, __version__, SpanFile.create(folder, "x"))
    channel = InProcessChannel("x", Server("x", on_call_tool=call_tool), relay, loop)
    channel.start()
    client = Client("x", channel)
    client.initialize()
    return client


def test_a_call_goes_through_the_relay_to_the_server_and_back(loop: Loop, tmp_path: Path) -> None:
    client = connect(loop, tmp_path)
    assert client.call_tool("hello", {}).text == "hello"
    client.channel.close()
    (file,) = tmp_path.iterdir()
    assert "tools/call hello" in file.read_text()
    assert "mcp.connection x" in file.read_text()


def test_an_unknown_method_is_answered_by_the_server_and_not_by_us(loop: Loop, tmp_path: Path) -> None:
    client = connect(loop, tmp_path)
    answer = client.request("no/such", {})
    assert answer.failed
    assert (answer.error or {})["code"] == -32601
    client.channel.close()


def test_a_server_that_asks_the_client_gets_its_answer_within_the_call(loop: Loop, tmp_path: Path) -> None:
    client = connect(loop, tmp_path)
    answer = client.call_tool("ask", {})
    assert answer.failed
    client.channel.close()


def test_a_server_that_hangs_runs_into_the_deadline_and_is_still_ended(loop: Loop, tmp_path: Path) -> None:
    client = connect(loop, tmp_path)
    loop.deadline = Deadline.after(0.05)
    with pytest.raises(TimeUpError):
        client.call_tool("hang", {})
    loop.deadline = Deadline.after(30)
    client.channel.close()
    (file,) = tmp_path.iterdir()
    assert "tools/call hang" in file.read_text()
    assert "mcp.connection x" in file.read_text()


def test_a_hanging_call_is_left_when_the_trial_is_cancelled(loop: Loop, tmp_path: Path) -> None:
    client = connect(loop, tmp_path)
    read, write = os.pipe()
    loop.deadline = Deadline.after(30, read)
    loop.loop.call_later(0.02, os.write, write, b"x")
    with pytest.raises(TrialCancelledError):
        client.call_tool("hang", {})
    os.close(read)
    os.close(write)
    loop.deadline = Deadline.after(30)
    client.channel.close()


def test_a_server_whose_input_has_ended_ends(loop: Loop, tmp_path: Path) -> None:
    client = connect(loop, tmp_path)
    client.channel.close_input()
    with pytest.raises(ServerEndedError):
        client.channel.receive()
    client.channel.close()
