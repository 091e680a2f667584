"""`wiretrap proxy bridge` as a process: an SDK client over HTTP, servers over stdio, in both eras."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic

import anyio
import pytest

from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import Span
from tests.proxy.bridgewires import HELLO, modern, told
from tests.proxy.deniedlines import DENIED_ONES, NESTED, UNREADABLE
from tests.proxy.httpupstream import WAIT
from tests.proxy.httpwires import JSON_TYPE, Client
from tests.proxy.test_connect_process import SEEN
from tests.proxy.test_http_process import Mode, talk
from tests.proxy.test_sdk_clients import SERVER
from tests.proxy.wires import call

WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
RAW = str(Path(__file__).with_name("raw_server.py"))


class Bridge:
    """A bridge process: where it is, and what it recorded."""

    def __init__(self, process: "subprocess.Popen[str]", spans: Path) -> None:
        assert process.stdout is not None
        self.process = process
        self.spans = spans
        said = json.loads(process.stdout.readline())
        self.url, self.port = said["url"], said["port"]

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=WAIT)
        return self.process.returncode, said

    def read(self, kind: str) -> list[Span]:
        notes: list[str] = []
        found = list(read_spans([str(self.spans)], notes.append))
        assert notes == []
        return [span for span in found if span.attributes[v.SPAN_KIND] == kind]


@contextmanager
def started(folder: Path, *options: str) -> Iterator[Bridge]:
    spans = folder / "spans"
    line = [WIRETRAP, "proxy", "bridge", "--server", "x", "--port", "0", "--spans", str(spans), *options]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Bridge(process, spans)
        finally:
            process.kill()


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_sdk_client_over_http_sees_of_a_server_over_stdio_all_that_it_says(tmp_path: Path) -> None:
    server = [sys.executable, "-P", SERVER, str(tmp_path / "log")]
    with started(tmp_path, "--deny", "mcp/x/evil", *server) as bridge:
        modes: tuple[Mode, ...] = ("legacy", "2026-07-28")
        for mode in modes:
            assert anyio.run(talk, bridge.url, mode) == SEEN
        code, said = bridge.end()
        assert code == 0
        assert said.startswith(f"wiretrap: server x, {bridge.url} to {server[0]}, spans ")
        note = "wiretrap: the server x lists no tool that these rules deny: mcp/x/evil"
        assert said.splitlines()[1:] == [note]
        calls = [span for span in bridge.read("request") if v.TOOL_NAME in span.attributes]
        assert {span.attributes[v.OUTCOME] for span in calls} == {"ok"}
        assert len(calls) == 22 + 23
        assert bridge.read("unmatched") == []


def test_no_spelling_of_a_denied_call_reaches_a_real_server(tmp_path: Path) -> None:
    bodies = [text.encode() for text, _ in DENIED_ONES.values()]
    bodies += [line for line, _ in (*UNREADABLE.values(), *NESTED.values()) if len(line) < 50_000]
    log = tmp_path / "log"
    with started(tmp_path, "--deny", "mcp/x/evil", "--", sys.executable, "-S", RAW, str(log), "answer") as bridge:
        with Client(bridge.port) as client:

            def post(body: bytes, headers: list[tuple[bytes, bytes]]) -> int:
                client.send("POST", "/mcp", body, headers)
                answer = client.rest(client.head())
                session.extend(answer.values("mcp-session-id"))
                return answer.status

            session: list[str] = []
            hello = (HELLO % "2025-11-25").encode()
            assert post(hello, [JSON_TYPE]) == 200
            own = [JSON_TYPE, (b"mcp-session-id", session[0].encode())]
            for body in bodies:
                assert post(body, own) in {200, 400}
                assert post(body, told(name="evil")) in {200, 400, 404}
            last = call("ok").encode()
            assert post(last, own) == 200
            assert post(modern(name="ok").encode(), told(name="ok")) == 200
        bridge.end()
        lines = log.read_bytes().splitlines()
        assert lines[:2] == [hello, last]
        assert [json.loads(line)["params"]["name"] for line in lines[2:]] == ["ok"]
        denied = [span for span in bridge.read("decision") if span.attributes[v.DECISION] == "deny"]
        assert len(denied) >= 2 * len(bodies)


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    while True: time.sleep(60)
for line in sys.stdin:
    if '"initialize"' in line:
        print('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}', flush=True)
while True: time.sleep(60)
"""


@pytest.mark.measured
def test_told_to_stop_it_is_gone_with_servers_that_do_not_want_to_go_and_its_spans_are_whole(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--", sys.executable, "-c", STUBBORN) as bridge, Client(bridge.port) as client:
        client.send("POST", "/mcp", (HELLO % "2025-11-25").encode(), [JSON_TYPE])
        (session,) = client.rest(client.head()).values("mcp-session-id")
        own = [JSON_TYPE, (b"mcp-session-id", session.encode())]
        with Client(bridge.port) as listening:
            listening.send("GET", "/mcp", None, own)
            assert listening.head().status == 200
            client.send("POST", "/mcp", call("ok").encode(), own)
            (server,) = children_of(bridge.process.pid)
            (left,) = children_of(server)
            assert bridge.end()[0] == 0
        # The bridge took the second in, but whoever is killed is gone a moment after that only.
        until = monotonic() + WAIT
        while is_there(server) or is_there(left):
            assert monotonic() < until
            select([], [], [], 0.01)
        requests = {span.attributes[v.METHOD]: span.attributes[v.OUTCOME] for span in bridge.read("request")}
        assert requests.pop("initialize") == "ok"
        assert set(requests.values()) <= {"unanswered"}
        assert signal.SIGTERM.name in {span.attributes[v.CLOSE_REASON] for span in bridge.read("connection_closed")}


def test_killed_it_leaves_no_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(tmp_path, "--", sys.executable, "-S", RAW, str(log), "answer") as bridge:
        with Client(bridge.port) as client:
            client.send("POST", "/mcp", (HELLO % "2025-11-25").encode(), [JSON_TYPE])
            assert client.rest(client.head()).status == 200
        (server,) = children_of(bridge.process.pid)
        descriptor = os.pidfd_open(server)
        try:
            bridge.process.kill()
            assert select([descriptor], [], [], WAIT)[0] == [descriptor]
        finally:
            os.close(descriptor)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--port", "0", "no-such-program-here"], 127, "is not found"),
        (["--port", "0", "--path", "mcp", "cat"], 2, "begins with /"),
    ],
)
def test_what_cannot_start_says_why(tmp_path: Path, options: list[str], code: int, said: str) -> None:
    line = [WIRETRAP, "proxy", "bridge", "--server", "x", "--spans", str(tmp_path / "spans"), *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
