"""What passes through the proxy over HTTP is what a direct connection would bring, at once; both ends end together."""

import socket
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.refusals import NOT_READABLE, SERVER_ENDED
from tests.proxy.deniedlines import code_of, ids_answered
from tests.proxy.httpmessages import OK, RESULT
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import JSON_TYPE, Client, Proxy, through
from tests.proxy.wires import ALLOWING, EVIL

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
