"""`wiretrap proxy connect` as a process: an SDK client over stdio, an SDK server over HTTP, in both eras."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import anyio
import pytest
from mcp import StdioServerParameters

from proxy import vocabulary as v
from proxy.spanread import read_spans
from tests.proxy.httpupstream import WAIT, Request, Upstream
from tests.proxy.test_http_process import Mode, sdk_server, talk
from tests.proxy.wires import call

__all__ = ["sdk_server"]
WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))

SEEN = (["ask", "slow", "progress", "plain"], "hello, Ann, at file:///w", [1.0, 2.0])
"""What a client sees of the server in `asking_server.py`."""


def command(folder: Path, url: str, *options: str) -> list[str]:
    return [WIRETRAP, "proxy", "connect", "--server", "x", "--spans", str(folder / "spans"), "--quiet", *options, url]


def test_an_sdk_client_over_stdio_sees_of_a_server_over_http_all_that_it_says(sdk_server: str, tmp_path: Path) -> None:
    modes: tuple[Mode, ...] = ("legacy", "2026-07-28")
    for mode in modes:
        parameters = [
            *command(tmp_path, sdk_server, "--deny", "mcp/x/evil", "--header", "authorization: Bearer sesame-1")
        ]
        through = StdioServerParameters(command=parameters[0], args=parameters[1:])
        assert anyio.run(talk, through, mode) == SEEN
    spans = list(read_spans([str(tmp_path / "spans")], lambda note: None))
    calls = [span for span in spans if v.TOOL_NAME in span.attributes and span.attributes[v.SPAN_KIND] == "request"]
    assert {span.attributes[v.OUTCOME] for span in calls} == {"ok"}
    # In the new era a call that asks for input is two rounds.
    assert len(calls) == 22 + 23
    assert {span.attributes[v.TRANSPORT] for span in calls} == {"stdio"}
    assert not [span for span in spans if span.attributes[v.SPAN_KIND] == "unmatched"]
    assert all(b"sesame-1" not in file.read_bytes() for file in (tmp_path / "spans").iterdir())
    closed = [span for span in spans if span.attributes[v.SPAN_KIND] == "connection_closed"]
    assert [span.attributes[v.CLOSE_REASON] for span in closed] == ["client_ended"] * 2


def test_told_to_stop_it_is_gone_with_a_call_open_and_its_session_is_ended_and_its_spans_are_whole(
    tmp_path: Path,
) -> None:
    called = Event()

    def hold(request: Request) -> None:
        match json.loads(request.body or b"{}").get("method"):
            case "initialize":
                result = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}'
                request.answer(result, headers="content-type: application/json\r\nmcp-session-id: s1")
            case "tools/call":
                called.set()
                assert request.gone()
            case _:
                request.answer(b"", "202 Accepted")

    upstream = Upstream(hold)
    try:
        url = f"http://127.0.0.1:{upstream.port}/mcp?a=b&token=sesame-2"
        with subprocess.Popen(command(tmp_path, url), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'
            process.stdin.write(hello)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 0
            process.stdin.write(call("ok").encode() + b"\n")
            process.stdin.flush()
            assert called.wait(WAIT)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT) == 0
        assert [request.method for request in upstream.requests] == ["POST", "POST", "DELETE"]
        assert upstream.requests[-1].values("mcp-session-id") == ["s1"]
        assert {request.target for request in upstream.requests} == {"/mcp?a=b&token=sesame-2"}
    finally:
        upstream.close()
    spans = list(read_spans([str(tmp_path / "spans")], lambda note: None))
    outcomes = [span.attributes[v.OUTCOME] for span in spans if v.TOOL_NAME in span.attributes]
    assert outcomes == ["unanswered"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["ftp://x"], "begins with http:// or https://"),
        (["http://x/ y?key=hidden-value"], "without blanks"),
        (["http://x/", "--header", "a: hidden-value\n1"], "control character"),
    ],
)
def test_what_cannot_start_says_why_without_the_value_and_exits_2(
    tmp_path: Path, options: list[str], said: str
) -> None:
    line = [WIRETRAP, "proxy", "connect", "--server", "x", "--spans", str(tmp_path / "spans"), *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "hidden-value" not in done.stderr
