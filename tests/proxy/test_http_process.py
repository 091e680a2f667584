"""`wiretrap proxy http` as a process, the official SDK on both ends of it in both eras."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event
from typing import Literal

import anyio
import mcp_types as t
import pytest
from mcp import Client, StdioServerParameters

from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import Span
from tests.proxy.httpupstream import WAIT, Request, Upstream
from tests.proxy.httpwires import JSON_TYPE
from tests.proxy.httpwires import Client as RawClient
from tests.proxy.test_sdk_clients import SERVER, on_elicit, on_roots, on_sample
from tests.proxy.wires import call

WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
Mode = Literal["legacy", "2026-07-28", "auto"]


@dataclass
class Started:
    """A proxy process: where it is, and what it said."""

    process: subprocess.Popen[str]
    url: str
    port: int
    spans: Path

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Tell it to stop; its exit code and all that it said on stderr."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=WAIT)
        return self.process.returncode, said

    def read(self, kind: str) -> list[Span]:
        notes: list[str] = []
        found = list(read_spans([str(self.spans)], notes.append))
        assert notes == []
        return [span for span in found if span.attributes[v.SPAN_KIND] == kind]


@contextmanager
def started(folder: Path, url: str, *options: str) -> Iterator[Started]:
    spans = folder / "spans"
    command = [WIRETRAP, "proxy", "http", "--server", "x", "--url", url, "--port", "0", "--spans", str(spans), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert told["server"] == "x"
            yield Started(process, told["url"], told["port"], spans)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def sdk_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an SDK server, which keeps nothing from one client to the next."""
    command = [sys.executable, "-P", SERVER, str(tmp_path_factory.mktemp("sdk") / "log"), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


async def talk(target: str | StdioServerParameters, mode: Mode) -> tuple[list[str], str, list[float]]:
    reported: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    with anyio.fail_after(WAIT):
        async with Client(
            target,
            mode=mode,
            elicitation_callback=on_elicit,
            sampling_callback=on_sample,
            list_roots_callback=on_roots,
        ) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            asked = await client.call_tool("ask", {})
            await client.call_tool("progress", {}, progress_callback=on_progress)
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(client.call_tool, "plain", {})
    return tools, " ".join(block.text for block in asked.content if isinstance(block, t.TextContent)), reported


@cache
def talked(url: str, mode: Mode) -> tuple[list[str], str, list[float]]:
    """The same, once for each server and mode."""
    return anyio.run(talk, url, mode)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
@pytest.mark.parametrize("options", [(), ("--deny", "mcp/x/evil")], ids=["no policy", "a policy"])
def test_an_sdk_client_sees_through_the_proxy_what_it_sees_without(
    sdk_server: str, mode: Mode, options: tuple[str, ...], tmp_path: Path
) -> None:
    with started(tmp_path, sdk_server, *options) as proxy:
        assert anyio.run(talk, proxy.url, mode) == talked(sdk_server, mode)
        code, said = proxy.end()
        assert code == 0
        assert said.startswith(f"wiretrap: server x, {proxy.url} to {sdk_server}, spans ")
        note = "wiretrap: the server x lists no tool that these rules deny: mcp/x/evil"
        assert said.splitlines()[1:] == ([note] if options else [])
        requests = proxy.read("request")
        calls = [span for span in requests if span.attributes[v.METHOD] == "tools/call"]
        assert {span.attributes[v.OUTCOME] for span in calls} == {"ok"}
        # In the new era a call that asks for input is two rounds.
        assert len(calls) == 22 + (mode != "legacy")
        if mode == "legacy":
            assert sum(span.attributes[v.METHOD] == "initialize" for span in requests) == 1
            asked = {
                span.attributes[v.METHOD] for span in requests if span.attributes[v.DIRECTION] != "client_to_server"
            }
            assert asked == {"sampling/createMessage", "elicitation/create", "roots/list"}
        assert proxy.read("unmatched") == []


@pytest.mark.measured
def test_a_denied_tool_of_an_sdk_server_is_refused_in_both_eras(sdk_server: str, tmp_path: Path) -> None:
    async def refused(url: str, mode: Mode) -> t.CallToolResult:
        async with Client(url, mode=mode) as client:
            return await client.call_tool("plain", {})

    with started(tmp_path, sdk_server, "--deny", "mcp/x/plain", "--quiet") as proxy:
        for mode in ("legacy", "2026-07-28"):
            result = anyio.run(refused, proxy.url, mode)
            assert result.is_error
        assert proxy.end() == (0, "")
        assert {span.attributes[v.OUTCOME] for span in proxy.read("request") if v.TOOL_NAME in span.attributes} == {
            "denied"
        }


@pytest.mark.measured
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_is_gone_with_a_stream_and_a_call_open_and_its_spans_are_whole(
    tmp_path: Path, number: signal.Signals
) -> None:
    open_ones = [Event(), Event()]

    def hold(request: Request) -> None:
        if request.method == "GET":
            request.stream(b": open\n\n")
        open_ones[request.method == "GET"].set()
        assert request.gone()

    upstream = Upstream(hold)
    try:
        with started(tmp_path, f"http://127.0.0.1:{upstream.port}/mcp") as proxy:
            session = (b"mcp-session-id", b"s")
            with RawClient(proxy.port) as listening, RawClient(proxy.port) as calling:
                listening.send("GET", "/mcp", None, [session])
                assert listening.head().status == 200
                calling.send("POST", "/mcp", call("ok").encode(), [JSON_TYPE, session])
                assert all(one.wait(WAIT) for one in open_ones)
                assert proxy.end(number)[0] == 0
                assert calling.head().status == 503
            (request,) = proxy.read("request")
            assert (request.attributes[v.OUTCOME], request.attributes[v.REFUSED_BY_US]) == ("unanswered", True)
            (closed,) = proxy.read("connection_closed")
            assert closed.attributes[v.CLOSE_REASON] == number.name
    finally:
        upstream.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--url", "ftp://x", "--port", "0"], "begins with http:// or https://"),
        (["--url", "http://u:p@x/", "--port", "0"], "a user and a password"),
        (["--url", "http://x/?a=b", "--port", "0"], "query"),
        (["--url", "http://x:99999/", "--port", "0"], "is no address of a server"),
        (["--url", "http://x/", "--port", "0", "--spans", "/proc/nowhere"], "cannot be written"),
        (["--url", "http://x/", "--port", "0", "--host", "203.0.113.7"], "cannot listen there"),
        (["--url", "http://x/", "--port", "70000"], "not in the range"),
        (["--url", "http://x/"], "Missing option '--port'"),
        (["--url", "http://x/", "--port", "0", "--deny", "evil"], "--deny"),
    ],
)
def test_what_cannot_start_says_why_and_exits_2(tmp_path: Path, options: list[str], said: str) -> None:
    command = [WIRETRAP, "proxy", "http", "--server", "x", "--spans", str(tmp_path / "spans"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.measured
def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [WIRETRAP, "proxy", "http", "--server", "x", "--url", "http://x/", "--port", port]
        command += ["--spans", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"--port {port}" in done.stderr
