"""What passes through the proxy over HTTP is what a direct connection would bring, at once; both ends end together."""

import gzip
import json
import socket
from pathlib import Path
from threading import Event

import pytest

from proxy import vocabulary as v
from proxy.longlines import BRIEF
from proxy.refusals import NOT_READABLE, SERVER_ENDED
from tests.proxy.httpwires import JSON_TYPE, WAIT, Client, Proxy, Request, through
from tests.proxy.test_deny import code_of, ids_answered
from tests.proxy.wires import ALLOWING, EVIL, call

OK = call("ok").encode()
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
META = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
MODERN = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ok","arguments":{{}},{META}}}}}'.encode()


def data(body: bytes) -> bytes:
    return b"event: message\ndata: " + body + b"\n\n"


# Heads


def test_the_head_of_a_request_reaches_the_server_as_it_was_but_for_its_hops_and_host(tmp_path: Path) -> None:
    sent = [
        JSON_TYPE,
        (b"Accept", b"application/json, text/event-stream"),
        (b"accept-encoding", b"gzip, br"),
        (b"x-twice", b"1"),
        (b"X-Twice", b"2"),
        (b"authorization", b"Bearer t"),
        (b"cookie", b"a=b"),
        (b"last-event-id", b"7"),
        (b"mcp-session-id", b"s"),
        (b"mcp-protocol-version", b"2025-11-25"),
        (b"connection", b"keep-alive, x-hop"),
        (b"x-hop", b"1"),
        (b"keep-alive", b"timeout=5"),
        (b"te", b"trailers"),
    ]
    with through(tmp_path, ALLOWING) as (proxy, upstream):
        proxy.ask("POST", "/a%2Fb/%7e?q=%20&&x#", OK, sent)
        (request,) = upstream.requests
        assert (request.method, request.target, request.body) == ("POST", "/a%2Fb/%7e?q=%20&&x#", OK)
        expected = [("host", f"127.0.0.1:{upstream.port}")]
        expected += [(key.decode().lower(), one.decode()) for key, one in sent[:10]]
        assert [(key.lower(), one) for key, one in request.headers] == [*expected, ("content-length", str(len(OK)))]


STATUSES = {
    "401": (
        "401 Unauthorized",
        b'{"error":"no"}',
        'www-authenticate: Bearer resource_metadata="http://x/y", scope="a"',
    ),
    "403": ("403 Forbidden", b"", 'www-authenticate: Bearer error="insufficient_scope"'),
    "404": ("404 Not Found", b"Session not found", "content-type: text/plain"),
    "405": ("405 Method Not Allowed", b"", "allow: POST\r\nallow: GET"),
    "406": ("406 Not Acceptable", b"x", "a: b"),
    "500": ("500 Internal Server Error", b"<html>oh</html>", "content-type: text/html"),
    "307": ("307 Temporary Redirect", b"", "location: https://elsewhere.example/mcp"),
    "200": (
        "200 OK",
        RESULT,
        "set-cookie: a=1\r\nset-cookie: b=2\r\ndate: D\r\nserver: S\r\ncontent-type: application/json",
    ),
}


@pytest.mark.parametrize("name", STATUSES)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_status_headers_and_body_of_an_answer_are_the_servers(tmp_path: Path, name: str, method: str) -> None:
    status, body, headers = STATUSES[name]
    with through(tmp_path, ALLOWING, lambda request: request.answer(body, status, headers)) as (proxy, _):
        answer = proxy.ask(method, "/mcp", OK if method == "POST" else None, [(b"mcp-session-id", b"s")])
        assert (answer.status, answer.body) == (int(name), body)
        assert [f"{key}: {one}" for key, one in answer.headers[:-1]] == headers.split("\r\n")


def test_a_redirect_is_not_followed_and_leads_back_to_the_proxy(tmp_path: Path) -> None:
    with through(tmp_path) as (proxy, upstream):
        there = f"http://127.0.0.1:{upstream.port}/mcp/?a=b"
        upstream.handler = lambda request: request.answer(b"", "307 Temporary Redirect", f"location: {there}")
        answer = proxy.post(OK)
        assert answer.values("location") == [f"http://127.0.0.1:{proxy.port}/mcp/?a=b"]
        assert len(upstream.requests) == 1


def by_target(request: Request) -> None:
    body = request.target.encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
    request.send(head if request.method == "HEAD" else head + body)


def test_all_of_the_origin_passes(tmp_path: Path) -> None:
    with through(tmp_path, EVIL, by_target) as (proxy, _):
        for target in ("/.well-known/oauth-protected-resource/mcp", "/authorize?x=y", "/"):
            assert proxy.ask("GET", target).body == target.encode()
        with Client(proxy.port) as client:
            client.send("HEAD", "/", None, [])
            assert client.head().values("content-length") == ["1"]
            client.send("GET", "/", None, [])
            assert client.rest(client.head()).body == b"/"
        assert proxy.spans() == []


def test_the_answers_failure_is_told_from_the_proxys(tmp_path: Path) -> None:
    with through(
        tmp_path, handler=lambda request: request.answer(b"<html>", "503 Busy", "content-type: text/html")
    ) as (
        proxy,
        _,
    ):
        proxy.post(OK)
        request = proxy.only("request")
        assert request.attributes[v.OUTCOME] == "protocol_error"
        assert request.attributes[v.ERROR_TYPE] == "503"
        assert request.attributes[v.HTTP_STATUS] == 503
        assert v.REFUSED_BY_US not in request.attributes


def test_a_server_that_is_not_there_is_said_to_be_gone_by_us(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    proxy = Proxy(tmp_path, port)
    try:
        answer = proxy.post(OK)
        assert (answer.status, code_of(answer.json), ids_answered([answer.json])) == (502, SERVER_ENDED, [1])
        assert proxy.ask("GET").status == 502
        request = proxy.only("request")
        assert (request.attributes[v.REFUSED_BY_US], request.attributes[v.ERROR_TYPE]) == (True, str(SERVER_ENDED))
    finally:
        proxy.close()


def test_a_server_that_closes_without_an_answer_or_speaks_no_http_is_told(tmp_path: Path) -> None:
    def close(request: Request) -> None:
        request.connection.shutdown(socket.SHUT_RDWR)

    with through(tmp_path, handler=close) as (proxy, upstream):
        assert proxy.post(OK).status == 502
        upstream.handler = lambda request: request.send(b"hello\r\n\r\n")
        assert proxy.post(OK).status == 502


# Host and Origin


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost", 200),
        (b"LOCALHOST:1", 200),
        (b"127.0.0.1:9", 200),
        (b"[::1]:9", 200),
        (b"named.example", 200),
        (b"evil.example", 421),
        (b"evil.example:80", 421),
        (b"localhost.evil.example", 421),
        (b"localhost@evil.example", 421),
        (b"192.0.2.1", 421),
        (b"", 421),
        (b"localhost:x", 421),
    ],
)
def test_only_hosts_of_ours_are_served(tmp_path: Path, host: bytes, status: int) -> None:
    with through(tmp_path, names=("named.example",)) as (proxy, upstream):
        assert proxy.ask("POST", "/mcp", OK, [(b"host", host)]).status == status
        assert len(upstream.requests) == (status == 200)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:6274", 200),
        ("http://127.0.0.1:1", 200),
        ("https://page.example", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("file://", 403),
        ("http://localhost.evil.example", 403),
    ],
)
def test_only_origins_of_ours_are_let_in_and_pass_as_they_are(tmp_path: Path, origin: str, status: int) -> None:
    with through(tmp_path, origins=("https://page.example",)) as (proxy, upstream):
        assert proxy.post(OK, (b"origin", origin.encode())).status == status
        assert [request.values("origin") for request in upstream.requests] == ([[origin]] if status == 200 else [])


def test_our_own_origin_becomes_the_servers(tmp_path: Path) -> None:
    with through(tmp_path) as (proxy, upstream):
        proxy.post(OK, (b"origin", f"http://127.0.0.1:{proxy.port}".encode()))
        assert upstream.requests[0].values("origin") == [f"http://127.0.0.1:{upstream.port}"]


# Bodies


def test_a_packed_answer_passes_as_it_is_and_is_recorded_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(RESULT)
    events = gzip.compress(data(RESULT))
    with through(tmp_path) as (proxy, upstream):
        upstream.handler = lambda request: request.answer(
            packed, headers="content-encoding: gzip\r\ncontent-type: application/json"
        )
        assert proxy.post(OK).body == packed
        upstream.handler = lambda request: request.answer(
            events, headers="content-encoding: gzip\r\ncontent-type: text/event-stream"
        )
        assert proxy.post(OK).body == events
        for one in proxy.spans("request"):
            assert (one.attributes[v.OUTCOME], one.attributes[v.TOOL_RESULT]) == ("ok", '{"content":[]}')


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_in_an_encoding_that_is_not_read_passes_and_the_record_says_so(
    tmp_path: Path, encoding: str, kind: str
) -> None:
    headers = f"content-encoding: {encoding}\r\ncontent-type: {kind}"
    with through(tmp_path, ALLOWING, lambda request: request.answer(b"\x1b", headers=headers)) as (proxy, upstream):
        assert proxy.post(OK, (b"accept-encoding", b"br, zstd")).body == b"\x1b"
        assert upstream.requests[0].values("accept-encoding") == ["br, zstd"]
        listening = kind == "text/event-stream"
        if listening:
            assert proxy.ask("GET", headers=[(b"mcp-session-id", b"s")]).body == b"\x1b"
        whys = [str(one.attributes[v.MALFORMED]) for one in proxy.spans("malformed")]
        assert whys == [f"the answer is encoded as {encoding}, which is not read"] * (1 + listening)
        assert proxy.only("request").attributes[v.OUTCOME] == "unanswered"


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_of_twenty_megabytes_passes_and_is_recorded_cut(tmp_path: Path, stream: bool) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"pad":"' + b"x" * 20_000_000 + b'","isError":true}}'

    def answer(request: Request) -> None:
        if not stream:
            request.answer(body)
            return
        request.stream()
        event = data(body)
        for at in range(0, len(event), 1_000_000):
            request.chunk(event[at : at + 1_000_000])
        request.end()

    with through(tmp_path, ALLOWING, answer) as (proxy, _):
        got = proxy.post(OK).body
        assert got == (data(body) if stream else body)
        request = proxy.only("request")
        assert request.attributes[v.OUTCOME] == "tool_error"
        assert request.attributes[v.payload_truncated("result")] is True
        assert request.attributes[v.payload_bytes("result")] == BRIEF


def test_ids_1_and_its_text_are_open_at_once_and_4_point_0_is_answered_as_4(tmp_path: Path) -> None:
    first = Event()

    def answer(request: Request) -> None:
        asked = json.loads(request.body)["id"]
        if asked == 1:
            assert first.wait(WAIT)
        told = 4 if asked == 4.0 else asked
        request.answer(
            json.dumps({"jsonrpc": "2.0", "id": told, "result": {"content": [], "for": str(asked)}}).encode()
        )
        if asked == "1":
            first.set()

    session = (b"mcp-session-id", b"s")
    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as one:
        one.send("POST", "/mcp", call(id_text="1").encode(), [JSON_TYPE, session])
        assert json.loads(proxy.post(call(id_text='"1"'), session).body)["id"] == "1"
        assert json.loads(one.rest(one.head()).body)["id"] == 1
        assert json.loads(proxy.post(call(id_text="4.0"), session).body)["id"] == 4
        found = {one.attributes[v.ID_TEXT]: one.attributes for one in proxy.spans("request")}
    assert set(found) == {"1", '"1"', "4.0"}
    assert all(one[v.OUTCOME] == "ok" and v.ID_REUSED not in one for one in found.values())


def test_clients_without_a_session_may_use_the_same_id_at_once(tmp_path: Path) -> None:
    second = Event()

    def answer(request: Request) -> None:
        slow = b"slow" in request.body
        assert not slow or second.wait(WAIT)
        request.answer(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"slow":%s}}' % (b"true" if slow else b"false"))
        second.set()

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as one:
        one.send("POST", "/mcp", MODERN.replace(b'"ok"', b'"slow"'), [JSON_TYPE])
        proxy.post(MODERN)
        one.rest(one.head())
        found = {one.attributes[v.TOOL_NAME]: one.attributes for one in proxy.spans("request")}
        (closed,) = proxy.spans("connection_closed")
    assert "true" in str(found["slow"][v.TOOL_RESULT])
    assert "false" in str(found["ok"][v.TOOL_RESULT])
    assert not any(v.ID_REUSED in one for one in found.values())
    assert closed.attributes[v.PROTOCOL_VERSION] == "2026-07-28"


# Streams and ends


def test_events_and_comments_are_forwarded_as_they_come(tmp_path: Path) -> None:
    parts = [
        b": hello\n\n",
        b"id: 1\nretry: 5\ndata:\n\n",
        b"data: {",
        b'"jsonrpc":"2.0","method":"n"}\r\n\r\n',
        b":p\r",
    ]
    go = Event()

    def answer(request: Request) -> None:
        request.stream()
        for part in parts:
            request.chunk(part)
            assert go.wait(WAIT)
            go.clear()
        request.chunk(data(RESULT))
        request.end()

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as client:
        client.send("POST", "/mcp", OK, [JSON_TYPE])
        assert client.head().values("content-type") == ["text/event-stream"]
        for part in parts:
            assert client.chunk() == part
            go.set()
        assert client.chunk() == data(RESULT)
        assert client.chunk() == b""
        assert proxy.only("request").attributes[v.OUTCOME] == "ok"


def test_a_client_that_goes_before_the_head_of_the_answer_takes_the_upstream_with_it(tmp_path: Path) -> None:
    asked, gone = Event(), Event()

    def answer(request: Request) -> None:
        asked.set()
        assert request.gone()
        gone.set()

    with through(tmp_path, ALLOWING, answer) as (proxy, _):
        client = Client(proxy.port)
        client.send("POST", "/mcp", MODERN, [JSON_TYPE])
        assert asked.wait(WAIT)
        client.close()
        assert gone.wait(WAIT)
        assert proxy.only("request").attributes[v.OUTCOME] == "cancelled"


def test_a_client_that_goes_in_mid_stream_takes_the_upstream_with_it(tmp_path: Path) -> None:
    gone = Event()

    def answer(request: Request) -> None:
        request.stream(b": hi\n\n")
        assert request.gone()
        gone.set()

    with through(tmp_path, ALLOWING, answer) as (proxy, _):
        client = Client(proxy.port)
        client.send("POST", "/mcp", OK, [JSON_TYPE])
        client.head()
        assert client.chunk() == b": hi\n\n"
        client.close()
        assert gone.wait(WAIT)
        # Up to 2025-11-25 going away is no cancellation.
        assert proxy.only("request").attributes[v.OUTCOME] == "unanswered"


def test_a_server_that_breaks_off_breaks_the_client_off(tmp_path: Path) -> None:
    def answer(request: Request) -> None:
        request.stream(b": hi\n\n")
        request.connection.shutdown(socket.SHUT_RDWR)

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as client:
        client.send("POST", "/mcp", OK, [JSON_TYPE])
        client.head()
        assert client.chunk() == b": hi\n\n"
        with pytest.raises(ConnectionError):
            client.chunk()
        assert proxy.only("request").attributes[v.OUTCOME] == "unanswered"


def test_one_connection_to_the_server_serves_many_requests(tmp_path: Path) -> None:
    with through(tmp_path) as (proxy, upstream):
        for _ in range(5):
            proxy.post(OK)
        assert len({id(request.connection) for request in upstream.requests}) == 1


def test_a_client_that_waits_for_100_continue_gets_it(tmp_path: Path) -> None:
    with through(tmp_path) as (proxy, upstream), Client(proxy.port) as client:
        length = (b"content-length", b"%d" % len(OK))
        client.send("POST", "/mcp", None, [JSON_TYPE, (b"expect", b"100-continue"), length])
        assert client.head().status == 100
        client.socket.sendall(OK)
        assert client.rest(client.head()).status == 200
        assert upstream.requests[0].values("expect") == []


def test_parallel_calls_do_not_wait_for_a_slow_one(tmp_path: Path) -> None:
    slow = Event()

    def answer(request: Request) -> None:
        asked = json.loads(request.body)["id"]
        if asked == 0:
            assert slow.wait(WAIT)
        request.answer(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % asked)

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as first:
        first.send("POST", "/mcp", call(id_text="0").encode(), [JSON_TYPE])
        others = [Client(proxy.port) for _ in range(200)]
        for number, client in enumerate(others, 1):
            client.send("POST", "/mcp", call(id_text=str(number)).encode(), [JSON_TYPE])
        for number, client in enumerate(others, 1):
            assert json.loads(client.rest(client.head()).body)["id"] == number
            client.close()
        slow.set()
        assert json.loads(first.rest(first.head()).body)["id"] == 0
        assert {one.attributes[v.OUTCOME] for one in proxy.spans("request")} == {"ok"}


def test_a_record_that_fails_lets_no_call_through_over_http(tmp_path: Path) -> None:
    with through(tmp_path) as (proxy, upstream):
        assert proxy.post(OK).status == 200
        (seat,) = proxy.app.asking.seats._all.values()
        seat.relay.ledger.spans.broken = True
        answer = proxy.post(OK)
        assert code_of(answer.json) == 10004
        assert len(upstream.requests) == 1
        proxy.close()
        assert proxy.app.asking.seats.failure
        proxy.app.asking.seats._failure = ""


def test_a_refusal_of_ours_is_marked(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, _):
        assert code_of(proxy.post(b"{").json) == NOT_READABLE
