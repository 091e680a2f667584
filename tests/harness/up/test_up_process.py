"""`wiretrap up` as a process, with a server over HTTP and one over stdio: from the start to the end of all of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic

import pytest

from harness.processes import descendants
from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import JSON
from tests.proxy.httpupstream import Upstream
from tests.proxy.wires import call

WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
SMALL = str(Path(__file__).parent.parent / "small_server.py")
DEADLINE = 60.0
CLIENT: JSON = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


class Up:
    """A started `wiretrap up`, and what it told."""

    def __init__(self, process: subprocess.Popen[str], said: Path) -> None:
        self.process = process
        self.said = said
        assert process.stdout is not None
        self.told = json.loads(process.stdout.readline())

    def health(self) -> tuple[int, dict[str, dict[str, JSON]]]:
        port = int(self.told["health"].rsplit(":", 1)[1].strip("/"))
        connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        connection.request("GET", "/")
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found["servers"]

    def until_said(self, text: str, times: int = 1) -> str:
        due = monotonic() + DEADLINE
        while self.said.read_text().count(text) < times:
            assert monotonic() < due, self.said.read_text()
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended with {self.process.wait(0.01)}: {self.said.read_text()}")
        return self.said.read_text()


class Agent:
    """A client of the old era at one URL."""

    def __init__(self, url: str) -> None:
        self.connection = HTTPConnection(url.removeprefix("http://").partition("/")[0], timeout=DEADLINE)
        self.headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        self.post(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT}))
        self.post('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def post(self, body: str) -> str:
        self.connection.request("POST", "/mcp", body, self.headers)
        answer = self.connection.getresponse()
        session = answer.getheader("mcp-session-id")
        if session:
            self.headers["mcp-session-id"] = session
        return answer.read().decode()


@contextmanager
def started(folder: Path, file: dict[str, JSON]) -> Iterator[Up]:
    (folder / "up.yaml").write_text(json.dumps(file))
    said = folder / "said"
    with said.open("wb") as errors:
        command = [WIRETRAP, "up", "up.yaml", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder)
    with process:
        try:
            yield Up(process, said)
        finally:
            process.kill()


def policy(folder: Path, text: str) -> None:
    (folder / "policy.yaml").write_text(text)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
@pytest.mark.measured
def test_servers_of_both_kinds_are_served_reloaded_watched_and_ended_together(tmp_path: Path) -> None:
    policy(tmp_path, "rules: []")
    upstream = Upstream()
    file: dict[str, JSON] = {
        "run": "one-run",
        "spans": "spans",
        "policy": {"file": "policy.yaml"},
        "servers": {
            "remote": {"url": f"http://127.0.0.1:{upstream.port}/mcp"},
            "local": {"command": [sys.executable, "-P", SMALL], "trust": "internal"},
        },
    }
    try:
        with started(tmp_path, file) as up:
            remote, local = (Agent(up.told["servers"][name]) for name in ("remote", "local"))
            assert "refused" not in remote.post(call("evil")) + local.post(call("evil"))
            policy(tmp_path, "rules: [{deny: 'mcp/*/evil'}]")
            up.process.send_signal(signal.SIGHUP)
            up.until_said("policies read again: remote, local")
            assert "refused" in remote.post(call("evil"))
            assert "refused" in local.post(call("evil"))
            policy(tmp_path, "rules: [{deny: evil}]")
            up.process.send_signal(signal.SIGHUP)
            said = up.until_said("the old ones stand: ")
            assert "policy.yaml:1: rules[0].deny: the glob 'evil' does not start with mcp/" in said
            assert "refused" in local.post(call("evil"))

            status, servers = up.health()
            assert status == 200
            assert [(one["state"], one["calls"], one["record_failure"]) for one in servers.values()] == [
                ("running", 2, ""),
                ("running", 3, ""),
            ]
            assert servers["local"]["connections"] == 1
            [proxy] = [one for one in descendants(up.process.pid) if "bridge" in arguments(one.pid)]
            os.kill(proxy.pid, signal.SIGKILL)
            up.until_said("server local: its proxy ended with signal 9; its clients are cut off")
            status, servers = up.health()
            assert (status, servers["local"]["state"], servers["remote"]["state"]) == (503, "ended", "running")

            # The server of the killed proxy died with it; its zombie waits for the end.
            due = monotonic() + DEADLINE
            while len(below := [one for one in descendants(up.process.pid) if not one.zombie]) != 1:
                assert monotonic() < due, below
            for agent in (remote, local):
                agent.connection.close()
            up.process.send_signal(signal.SIGTERM)
            assert up.process.wait(DEADLINE) == 1
            assert not any(Path(f"/proc/{one.pid}").exists() for one in below)
    finally:
        upstream.close()
    notes: list[str] = []
    spans = list(read_spans(sorted(str(path) for path in (tmp_path / "spans").iterdir()), notes.append))
    assert notes == []
    assert {span.attributes[v.RUN_ID] for span in spans} == {"one-run"}
    ended = [span for span in spans if span.attributes[v.SPAN_KIND] == "connection_closed"]
    assert {(span.attributes[v.SERVER_ID], span.attributes[v.CLOSE_REASON]) for span in ended} == {
        ("remote", "SIGTERM")
    }


def arguments(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_a_server_that_does_not_start_ends_all_and_is_named(tmp_path: Path) -> None:
    file: JSON = {
        "spans": "spans",
        "servers": {"web": {"url": "http://127.0.0.1:9/mcp"}, "gone": {"command": ["./no-such-program"]}},
    }
    (tmp_path / "up.yaml").write_text(json.dumps(file))
    ran = subprocess.run(
        [WIRETRAP, "up", "up.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "cannot start './no-such-program'" in ran.stderr
    assert "server gone: its proxy did not start (exit code 127); why stands above" in ran.stderr
