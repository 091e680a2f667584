"""Credentials and session ids that only requests bring, and that a body repeats, stand in no record."""

import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from proxy.heard import MOST, Heard
from proxy.httpserve import path_shown
from proxy.record import Identity, Recorder
from proxy.redact import Redactor
from proxy.spans import JSON
from tests.proxy.bridgewires import HELLO, Server, bridged
from tests.proxy.forwardwires import WAYS, Tunnel, Way, forwarded
from tests.proxy.httpupstream import Request, Upstream
from tests.proxy.httpwires import JSON_TYPE, through
from tests.proxy.wires import ALLOWING, call

BASIC = b64encode(b"alice:open-sesame-9").decode()
HEADERS = [
    (b"authorization", b"Bearer token-0123456789"),
    (b"cookie", b"a=cookie-0123456789; b=short"),
    (b"proxy-authorization", b"Basic " + BASIC.encode()),
    (b"mcp-session-id", b"session-0123456789"),
]
SECRETS = ("token-0123456789", "cookie-0123456789", "session-0123456789", "open-sesame-9", "alice:open-sesame-9", BASIC)


def repeats(request: Request) -> None:
    content = [{"type": "text", "text": text} for text in (*SECRETS, "given-0123456789", "b=short")]
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": content}}
    request.answer(
        json.dumps(result).encode(), headers="content-type: application/json\r\nmcp-session-id: given-0123456789"
    )


def record(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*.jsonl"))


def test_what_a_request_brings_in_headers_and_its_answer_repeats_is_not_recorded(tmp_path: Path) -> None:
    with through(tmp_path, ALLOWING, repeats) as (proxy, _):
        body = proxy.post(call("ok", arguments='{"told":"token-0123456789"}'), *HEADERS).body.decode()
        assert all(secret in body for secret in SECRETS), "what crosses the wire is not changed"
        assert proxy.spans("request")
    found = record(tmp_path)
    assert [secret for secret in SECRETS if secret in found] == []
    assert "b=short" in found


def test_so_are_headers_and_fields_of_a_query_by_their_names_and_cookies_that_a_server_sets(tmp_path: Path) -> None:
    secrets = ("api-0123456789", "query-0123456789", "set-0123456789")
    passed = ("region-0123456789", "page-0123456789", "argument-0123456789")

    def tells(request: Request) -> None:
        content = [{"type": "text", "text": text} for text in (*secrets, *passed)]
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).encode()
        request.answer(body, headers="content-type: application/json\r\nSet-Cookie: a=set-0123456789; Path=/")

    headers = [
        (b"x-api-key", b"api-0123456789"),
        (b"x-region", b"region-0123456789"),
        (b"mcp-param-key", b"argument-0123456789"),
    ]
    with through(tmp_path, None, tells) as (proxy, _):
        proxy.post(call("ok"), *headers, target="/mcp?page=page-0123456789&access_token=query-0123456789")
        assert proxy.spans("request")
    found = record(tmp_path)
    assert [secret for secret in secrets if secret in found] == []
    assert [text for text in passed if text not in found] == []


@pytest.mark.parametrize("way", WAYS)
def test_the_same_through_the_forward_proxy_which_keeps_its_own_credentials(tmp_path: Path, way: Way) -> None:
    with forwarded(tmp_path, ALLOWING, repeats, way=way) as (proxy, upstream):
        proxy.post(call("ok"), *HEADERS)
        assert upstream.requests[0].values("proxy-authorization") == []
        assert proxy.spans("request")
    found = record(tmp_path)
    assert [secret for secret in SECRETS if secret in found] == []


def test_credentials_in_the_request_for_a_tunnel_are_heard_for_what_is_inside(tmp_path: Path) -> None:
    with forwarded(tmp_path, ALLOWING, repeats) as (proxy, upstream):
        client = Tunnel(proxy.port, proxy.target, more=f"Proxy-Authorization: Basic {BASIC}\r\n")
        with client:
            client.send("POST", "/mcp", call("ok").encode(), [(b"Host", proxy.target.encode()), JSON_TYPE])
            client.rest(client.head())
        assert upstream.requests[0].values("proxy-authorization") == []
        assert proxy.spans("request")
    found = record(tmp_path)
    assert "open-sesame-9" not in found
    assert BASIC not in found
    assert "token-0123456789" in found, "nobody sent that one"


def test_of_many_values_the_last_are_kept_and_those_of_the_start_always() -> None:
    recorder = Recorder(Identity("x", "trusted", "http", "c"), "0", lambda digits: "0" * digits)
    recorder.redactor = Redactor(["first-0123456789"], b"k" * 32)
    heard = Heard(recorder, b"k" * 32)
    for number in range(2 * MOST):
        heard.headers([(b"mcp-session-id", b"session-%08d" % number)])
    assert recorder.redactor.finds("first-0123456789")
    assert recorder.redactor.finds(f"session-{2 * MOST - 1:08}")
    assert len(recorder.redactor.values) == MOST + 1


def test_a_session_id_that_a_server_gives_is_known_from_its_answer_on(tmp_path: Path) -> None:
    with through(tmp_path, ALLOWING, repeats) as (proxy, _):
        hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
        proxy.post(hello)
        assert proxy.spans("request")
    assert "given-0123456789" not in record(tmp_path)


def test_a_session_id_stands_in_no_record_of_a_bridge_though_its_server_repeats_it(tmp_path: Path) -> None:
    told: list[str] = []

    def tells(server: Server, message: JSON) -> None:
        assert isinstance(message, dict)
        text: JSON = [{"type": "text", "text": f"{' '.join(told)} token-0123456789"}]
        hello: dict[str, JSON] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": {"name": "s", "version": "1"},
        }
        result: dict[str, JSON] = hello if message["method"] == "initialize" else {"content": text}
        server.result(message, **result)

    with bridged(tmp_path, tells) as bridge:
        (session,) = bridge.post(HELLO % "2025-11-25").values("mcp-session-id")
        told.append(session)
        headers = [(b"mcp-session-id", session.encode()), (b"authorization", b"Bearer token-0123456789")]
        assert session in bridge.post(call("ok"), [JSON_TYPE, *headers]).body.decode()
        assert bridge.spans("request")
    found = record(tmp_path)
    assert "redacted:" in found
    assert session not in found
    assert "token-0123456789" not in found


def test_a_session_id_that_connect_is_given_stands_in_no_record_though_the_server_repeats_it(tmp_path: Path) -> None:
    wiretrap = str(Path(sys.executable).with_name("wiretrap"))
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
    upstream = Upstream(repeats)
    try:
        url = f"http://127.0.0.1:{upstream.port}/mcp"
        command = [wiretrap, "proxy", "connect", "--server", "s", "--spans", str(tmp_path), url]
        text = f"{hello}\n{call('ok')}\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    finally:
        upstream.close()
    assert "given-0123456789" in done.stdout
    found = record(tmp_path)
    assert "token-0123456789" in found, "nobody sent that one"
    assert "given-0123456789" not in found


def test_http_and_bridge_say_no_path_that_may_hold_a_token(tmp_path: Path) -> None:
    assert [path_shown(path) for path in ("", "/", "/mcp", "/sse")] == ["", "/", "/mcp", "/sse"]
    wiretrap = str(Path(sys.executable).with_name("wiretrap"))
    options = ["--server", "s", "--port", "0", "--spans", str(tmp_path)]
    url = "http://127.0.0.1:1/secret-path-token/mcp"
    for command in (["http", *options, "--url", url], ["bridge", *options, "--path", "/secret-path-token", "cat"]):
        process = subprocess.Popen(
            [wiretrap, "proxy", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            assert "secret-path-token" in json.loads(process.stdout.readline())["url"]
            process.terminate()
            _, said = process.communicate(timeout=60)
        assert said.count("/…") == (2 if command[0] == "http" else 1)
        assert "secret-path-token" not in said


def test_connect_says_only_the_origin_of_its_server_since_a_path_may_hold_a_token(tmp_path: Path) -> None:
    wiretrap = str(Path(sys.executable).with_name("wiretrap"))
    url = "http://127.0.0.1:1/secret-path-token/mcp"
    command = [wiretrap, "proxy", "connect", "--server", "s", "--spans", str(tmp_path), url]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert "server s, http://127.0.0.1:1/…, " in done.stderr
    assert "secret-path-token" not in done.stderr
