"""Other people's servers behind the proxy, called by a raw client and by both lines of the SDK, as without the proxy.

`make peers` puts them there; what is not there is skipped, and says so.
"""

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

import anyio
import pytest
from mcp import Client, StdioServerParameters

from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import JSON, Span
from tests.peers.catalogue import SERVERS, SPOKEN, Call, Stand, stand
from tests.peers.places import is_made, program

WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
CLIENT_1_30 = Path(__file__).parent / "peers" / "client_1_30.py"
DEADLINE = 60.0


def need(*peers: str) -> None:
    for peer in peers:
        if not is_made(peer):
            pytest.skip(f"the peer {peer!r} is not there; `make peers` makes it, where npm is had for those of npm")


def need_server(name: str) -> None:
    need(SERVERS[name])
    if name == "git" and shutil.which("git") is None:
        pytest.skip("git is not on this machine")


def proxied(one: Stand, spans: Path) -> tuple[str, ...]:
    return (WIRETRAP, "proxy", "stdio", "--quiet", "--server", "peer", "--spans", str(spans), *one.command)


def environment(one: Stand) -> dict[str, str]:
    return {**os.environ, **one.environment}


def recorded_calls(spans: Path) -> list[Call]:
    notes: list[str] = []
    found: list[Span] = list(read_spans([str(spans)], notes.append))
    assert not notes
    calls = sorted(
        (span for span in found if span.attributes[v.SPAN_KIND] == "request" and v.TOOL_NAME in span.attributes),
        key=lambda span: int(str(span.attributes[v.SEQ])),
    )
    return [
        Call(str(span.attributes[v.TOOL_NAME]), json.loads(str(span.attributes[v.TOOL_ARGUMENTS]))) for span in calls
    ]


class RawClient:
    """Lines over pipes, without an SDK: what it gets is the bytes of the answers."""

    def __init__(self, command: tuple[str, ...], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self.held = b""
        self.last_id = 0

    def send(self, message: dict[str, JSON]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def line(self) -> bytes:
        assert self.process.stdout is not None
        until = monotonic() + DEADLINE
        while b"\n" not in self.held:
            ready, _, _ = select.select([self.process.stdout], [], [], max(until - monotonic(), 0))
            chunk = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            assert chunk, "the server ended or said nothing"
            self.held += chunk
        line, _, self.held = self.held.partition(b"\n")
        return line

    def ask(self, method: str, params: dict[str, JSON]) -> bytes:
        self.last_id += 1
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        while True:
            line = self.line()
            message = json.loads(line)
            if message.get("id") == self.last_id and "method" not in message:
                return line

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


def raw_answers(command: tuple[str, ...], one: Stand) -> tuple[list[bytes], int]:
    client = RawClient(command, environment(one))
    try:
        opening: dict[str, JSON] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        answers = [client.ask("initialize", opening)]
        client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        answers.append(client.ask("tools/list", {}))
        answers += [client.ask("tools/call", {"name": call.tool, "arguments": call.arguments}) for call in one.calls]
    finally:
        code = client.end()
    return answers, code


def sdk_answers(command: tuple[str, ...], one: Stand, mode: str) -> list[JSON]:
    async def run() -> list[JSON]:
        parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=environment(one))
        async with Client(parameters, mode=mode) as client:
            tools = await client.list_tools()
            results = [await client.call_tool(call.tool, call.arguments) for call in one.calls]
            return [tools.model_dump(mode="json"), *(result.model_dump(mode="json") for result in results)]

    return anyio.run(run)


def old_sdk_answers(command: tuple[str, ...], one: Stand) -> list[JSON]:
    asked = {
        "command": list(command),
        "environment": environment(one),
        "calls": [{"tool": call.tool, "arguments": call.arguments} for call in one.calls],
    }
    done = subprocess.run(
        [program("mcp_1_30", "python"), "-P", str(CLIENT_1_30)],
        input=json.dumps(asked), capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers: list[JSON] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("name", SERVERS)
def test_a_third_party_server_answers_byte_for_byte_as_without_the_proxy(name: str, tmp_path: Path) -> None:
    need_server(name)
    directly = stand(name, tmp_path / "room")
    direct, code = raw_answers(directly.command, directly)
    one = stand(name, tmp_path / "room")
    through, code_through = raw_answers(proxied(one, tmp_path / "spans"), one)
    assert len(json.loads(direct[1])["result"]["tools"]) > 0
    assert through == direct
    assert code_through == code
    assert recorded_calls(tmp_path / "spans") == list(one.calls)


@pytest.mark.parametrize(("name", "mode"), SPOKEN)
def test_the_sdk_sees_a_third_party_server_as_without_the_proxy(name: str, mode: str, tmp_path: Path) -> None:
    need_server(name)
    directly = stand(name, tmp_path / "room")
    direct = sdk_answers(directly.command, directly, mode)
    one = stand(name, tmp_path / "room")
    assert sdk_answers(proxied(one, tmp_path / "spans"), one, mode) == direct
    assert recorded_calls(tmp_path / "spans") == list(one.calls)


@pytest.mark.parametrize("name", SERVERS)
def test_the_sdk_1_30_sees_a_third_party_server_as_without_the_proxy(name: str, tmp_path: Path) -> None:
    need_server(name)
    need("mcp_1_30")
    directly = stand(name, tmp_path / "room")
    direct = old_sdk_answers(directly.command, directly)
    one = stand(name, tmp_path / "room")
    assert old_sdk_answers(proxied(one, tmp_path / "spans"), one) == direct
    assert recorded_calls(tmp_path / "spans") == list(one.calls)


def test_the_files_that_a_server_was_told_to_write_are_written_through_the_proxy(tmp_path: Path) -> None:
    need_server("filesystem")
    one = stand("filesystem", tmp_path / "room")
    raw_answers(proxied(one, tmp_path / "spans"), one)
    assert (tmp_path / "room" / "note.txt").read_text(encoding="utf-8") == one.calls[0].arguments["content"]
