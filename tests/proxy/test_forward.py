"""What passes through the forward proxy, and what becomes of the connections on both of its sides."""

import asyncio
import json
import socket
from pathlib import Path
from threading import Event

import pytest

from proxy import tunnels
from proxy import vocabulary as v
from proxy.routes import Target
from tests.proxy.forwardwires import WAYS, Way, forwarded
from tests.proxy.httpupstream import WAIT, Request
from tests.proxy.httpwires import JSON_TYPE
from tests.proxy.wires import EVIL, call

OK = call("ok")


@pytest.mark.parametrize("way", WAYS)
def test_a_call_is_recorded_and_its_addresses_stay_what_they_are(tmp_path: Path, way: Way) -> None:
    def answer(request: Request) -> None:
        own = f"http://{request.values('host')[0]}"
        body = b'{"jsonrpc":"2.0","id":1,"result":{}}'
        request.answer(body, headers=f"content-type: application/json\r\nLocation: {own}/next\r\nX-A: 1\r\nX-A: 2")

    with forwarded(tmp_path, handler=answer, way=way) as (proxy, upstream):
        given = [(b"Origin", f"https://{proxy.target}".encode()), (b"Proxy-Authorization", b"Basic eDp5")]
        given += [(b"Proxy-Connection", b"keep-alive"), (b"Authorization", b"Bearer t"), (b"Host-X", b"1")]
        got = proxy.post(OK, *given, target="/mcp?a=%20b")
        (request,) = upstream.requests
        assert (request.target, request.body) == ("/mcp?a=%20b", OK.encode())
        assert request.values("host") == [proxy.target]
        assert request.values("origin") == [f"https://{proxy.target}"]
        assert request.values("authorization") == ["Bearer t"]
        assert request.values("proxy-authorization") == request.values("proxy-connection") == []
        assert got.values("location") == [f"http://{proxy.target}/next"]
        assert got.values("x-a") == ["1", "2"]
        span = proxy.only("request")
        assert (span.attributes[v.TOOL_NAME], span.attributes[v.SERVER_ID]) == ("ok", "x")
        assert "Bearer" not in "".join(path.read_text() for path in proxy.folder.iterdir())


@pytest.mark.parametrize("way", ["url", "tunnel"])
def test_a_host_that_is_no_server_of_ours_passes_and_is_not_recorded(tmp_path: Path, way: Way) -> None:
    with forwarded(tmp_path, EVIL, servers=("x=mcp.example",), way=way) as (proxy, upstream):
        assert proxy.post(call()).status == 200
        (request,) = upstream.requests
        assert request.body == call().encode()
        assert request.values("proxy-connection") == []
        assert proxy.spans() == []


def test_a_large_request_and_a_large_answer_of_another_host_pass(tmp_path: Path) -> None:
    body = b"x" * 3_000_000
    with forwarded(tmp_path, servers=("x=mcp.example",), handler=lambda one: one.answer(one.body)) as (proxy, _):
        assert proxy.ask("PUT", "/", body).body == body
        with proxy.client("url") as client:
            proxy.send(client, "POST", "/", None, [(b"transfer-encoding", b"chunked")])
            client.socket.sendall(b"3\r\nabc\r\n0\r\n\r\n")
            assert client.rest(client.head()).body == b"abc"


def test_a_server_without_a_port_is_at_every_port_and_one_with_a_port_only_there(tmp_path: Path) -> None:
    with forwarded(tmp_path, servers=("y=127.0.0.1:1", "x=127.0.0.1")) as (proxy, _):
        proxy.post(OK)
        assert proxy.only("request").attributes[v.SERVER_ID] == "x"


@pytest.mark.parametrize("way", WAYS)
def test_both_sides_keep_their_connections(tmp_path: Path, way: Way) -> None:
    with forwarded(tmp_path, way=way) as (proxy, upstream), proxy.client() as client:
        for _ in range(3):
            proxy.send(client, "POST", "/mcp", OK.encode(), [JSON_TYPE])
            assert client.rest(client.head()).status == 200
        assert len({id(request.connection) for request in upstream.requests}) == 1
        assert len(proxy.spans("connection_opened")) == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_event_goes_on_at_once_and_a_client_that_goes_away_is_gone_for_the_server(tmp_path: Path, way: Way) -> None:
    gone = Event()

    def stream(request: Request) -> None:
        request.stream(b": hello\n\n")
        request.chunk(b'data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n')
        assert request.gone()
        gone.set()

    with forwarded(tmp_path, handler=stream, way=way) as (proxy, _):
        with proxy.client() as client:
            proxy.send(client, "GET", "/mcp", None, [(b"mcp-session-id", b"s")])
            assert client.head().status == 200
            assert b"hello" in client.until(b"notifications/x")
        assert gone.wait(WAIT)
        assert proxy.only("notification").attributes[v.METHOD] == "notifications/x"


@pytest.mark.parametrize("way", WAYS)
def test_an_endpoint_of_the_older_transport_stays_the_servers_and_is_one_connection(tmp_path: Path, way: Way) -> None:
    streams: list[Request] = []

    def answer(request: Request) -> None:
        if request.method == "GET":
            request.stream(f"event: endpoint\ndata: http://{request.values('host')[0]}/messages?s=1\n\n".encode())
            streams.append(request)
            assert request.gone()
        else:
            request.answer(b"", "202 Accepted")
            streams[0].chunk(b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n')

    with forwarded(tmp_path, handler=answer, way=way) as (proxy, _), proxy.client() as stream:
        proxy.send(stream, "GET", "/sse", None, [])
        stream.head()
        assert f"data: http://{proxy.target}/messages?s=1\n".encode() in stream.until(b"endpoint")
        assert proxy.post(OK, target="/messages?s=1").status == 202
        stream.until(b"result")
        span = proxy.only("request")
        assert span.attributes[v.OUTCOME] == "ok"
        assert len(proxy.spans("connection_opened")) == 1


def test_one_end_of_a_tunnel_may_end_before_the_other(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        forwarded(tmp_path, servers=("x=mcp.example",)) as (proxy, up),
    ):
        up_port, up.port = up.port, server.getsockname()[1]
        with proxy.client("tunnel") as client:
            there, _ = server.accept()
            with there:
                client.socket.sendall(b"ask")
                client.socket.shutdown(socket.SHUT_WR)
                there.settimeout(WAIT)
                assert there.makefile("rb").read() == b"ask"
                there.sendall(b"answer")
                there.shutdown(socket.SHUT_WR)
                assert client.file.read() == b"answer"
        up.port = up_port


@pytest.mark.parametrize("broken", ["client", "server"])
def test_an_end_of_a_tunnel_that_breaks_off_breaks_off_the_other(tmp_path: Path, broken: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        forwarded(tmp_path, servers=("x=mcp.example",)) as (proxy, up),
    ):
        up_port, up.port = up.port, server.getsockname()[1]
        with proxy.client("tunnel") as client:
            there, _ = server.accept()
            there.settimeout(WAIT)
            client.socket.sendall(b"ask")
            assert there.recv(3) == b"ask"
            one, other = (client.socket, there) if broken == "client" else (there, client.socket)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            if broken == "client":
                client.file.close()
            one.close()
            with pytest.raises(ConnectionResetError):
                other.recv(1)
            there.close()
        up.port = up_port


def test_a_client_that_goes_away_before_its_tunnel_is_there_ends_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = Event(), Event()

    async def dial(target: Target) -> socket.socket:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    # Which server never answers is not for a test to say: no address is sure to swallow what is sent to it.
    monkeypatch.setattr(tunnels, "dial", dial)
    with forwarded(tmp_path, servers=("x=mcp.example",)) as (proxy, _):
        with proxy.client("url") as client:
            client.send("CONNECT", proxy.target, None, [])
            assert begun.wait(WAIT)
        assert ended.wait(WAIT)


def test_a_request_to_the_proxy_itself_is_refused(tmp_path: Path) -> None:
    with forwarded(tmp_path) as (proxy, upstream):
        for host in ("127.0.0.1", "localhost", "127.0.0.2"):
            with proxy.client("url") as client:
                client.send("GET", f"http://{host}:{proxy.port}/", None, [])
                assert client.rest(client.head()).status == 508
        with proxy.client("url") as client:
            client.send("CONNECT", f"localhost:{proxy.port}", None, [])
            assert client.rest(client.head()).status == 508
        assert upstream.requests == []


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/mcp"),
        ("OPTIONS", "*"),
        ("GET", "ftp://x/"),
        ("GET", "http://user@x/"),
        ("GET", "http://x:99999/"),
        ("GET", "http://x%2ey/"),
        ("GET", "http:///mcp"),
        ("CONNECT", "x"),
        ("CONNECT", "x:0"),
        ("CONNECT", "user@x:1"),
        ("CONNECT", "http://x:1/"),
    ],
)
def test_what_names_no_server_is_400(tmp_path: Path, method: str, target: str) -> None:
    with forwarded(tmp_path) as (proxy, _), proxy.client("url") as client:
        client.send(method, target, None, [])
        answer = client.rest(client.head())
        assert (answer.status, answer.values("content-type")) == (400, ["application/json"])
        assert b"Wiretrap" in answer.body


@pytest.mark.parametrize("servers", [("x=127.0.0.1",), ("x=mcp.example",)])
def test_a_server_that_is_not_there_is_502_in_the_proxys_name(tmp_path: Path, servers: tuple[str, ...]) -> None:
    with forwarded(tmp_path, servers=servers) as (proxy, upstream):
        upstream.close()
        answer = proxy.post(OK)
        assert (answer.status, json.loads(answer.body)["error"]["data"]["wiretrap"]["code"]) == (502, 10003)
        with proxy.client("url") as client:
            client.send("CONNECT", proxy.target, None, [])
            assert client.head().status == (200 if servers == ("x=127.0.0.1",) else 502)


def test_a_tunnel_that_is_asked_for_on_a_used_connection_is_refused(tmp_path: Path) -> None:
    with forwarded(tmp_path) as (proxy, _), proxy.client("url") as client:
        proxy.send(client, "POST", "/mcp", OK.encode(), [JSON_TYPE])
        client.rest(client.head())
        client.send("CONNECT", proxy.target, None, [])
        assert client.head().status == 400


def test_a_head_that_comes_byte_by_byte_is_read(tmp_path: Path) -> None:
    with forwarded(tmp_path) as (proxy, upstream), proxy.client("url") as client:
        post = f"POST /mcp HTTP/1.1\r\nHost: {proxy.target}\r\nContent-Type: application/json\r\n"
        post += f"Content-Length: {len(OK)}\r\n\r\n{OK}"
        # The client does not wait for the tunnel either.
        for byte in f"CONNECT {proxy.target} HTTP/1.1\r\n\r\n{post}".encode():
            client.socket.sendall(bytes([byte]))
        assert client.head().status == 200
        assert client.rest(client.head()).status == 200
        assert upstream.requests[0].body == OK.encode()


def test_told_to_stop_it_breaks_off_tunnels_and_streams_and_its_record_is_whole(tmp_path: Path) -> None:
    held = Event()

    def hold(request: Request) -> None:
        held.set()
        assert request.gone()

    with forwarded(tmp_path, handler=hold) as (proxy, _), proxy.client("tunnel") as stream:
        proxy.send(stream, "POST", "/mcp", OK.encode(), [JSON_TYPE])
        assert held.wait(WAIT)
        with proxy.client("tunnel") as unread:
            unread.socket.sendall(b"\x16\x03")
            proxy.wait_for("unread")
            proxy.close()
            with pytest.raises(ConnectionResetError):
                unread.socket.recv(1)
        assert stream.head().status == 503
        request = proxy.only("request").attributes
        assert (request[v.OUTCOME], request[v.REFUSED_BY_US]) == ("unanswered", True)
        assert [one.attributes[v.CLOSE_REASON] for one in proxy.spans("connection_closed")] == ["SIGTERM"] * 2
