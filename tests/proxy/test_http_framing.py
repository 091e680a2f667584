"""An answer over HTTP reaches the client with the framing that it had, or with none at all."""

from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.http1 import FramingError, read_request
from proxy.httpwords import Origin
from proxy.ownaddress import at_proxy
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import through
from tests.proxy.wires import ALLOWING, call, policy_of

RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
SAID = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize("length", [b"5", b"9999", b"17000000", b"5\r\ncontent-length: 7"])
def test_of_two_framings_the_transfer_encoding_is_the_one(tmp_path: Path, length: bytes) -> None:
    def both(request: Request) -> None:
        request.send(SAID + b"content-length: " + length + b"\r\ntransfer-encoding: chunked\r\n\r\n")
        request.chunk(RESULT)
        request.end()

    with through(tmp_path, ALLOWING, both) as (proxy, _):
        for _ in range(2):
            answer = proxy.post(call("ok"))
            assert (answer.status, answer.body, answer.values("content-length")) == (200, RESULT, [])
        outcomes = [span.attributes[v.OUTCOME] for span in proxy.spans("request")]
    assert outcomes == ["ok", "ok"]


@pytest.mark.parametrize("length", ["{0}, {0}", "{0}\r\ncontent-length: {0}"])
def test_a_length_that_is_said_twice_is_said_once(tmp_path: Path, length: str) -> None:
    said = length.format(len(RESULT)).encode()

    def twice(request: Request) -> None:
        body = b"" if request.method == "HEAD" else RESULT
        request.send(SAID + b"content-length: " + said + b"\r\n\r\n" + body)

    with through(tmp_path, ALLOWING, twice) as (proxy, _):
        answer = proxy.post(call("ok"))
        assert (answer.body, answer.values("content-length")) == (RESULT, [str(len(RESULT))])


@pytest.mark.parametrize("length", [b"5, 6", b"5\r\ncontent-length: 6", b"+5", b"0x5", b"five"])
def test_an_answer_whose_length_is_none_does_not_go_on(tmp_path: Path, length: bytes) -> None:
    def wrong(request: Request) -> None:
        request.send(SAID + b"content-length: " + length + b"\r\n\r\n")
        request.connection.close()

    with through(tmp_path, ALLOWING, wrong) as (proxy, _):
        assert proxy.post(call("ok")).status == 502
        assert proxy.ask("DELETE", "/mcp", None, []).status == 502


@pytest.mark.parametrize("name", ["Content_Length", "Transfer_Encoding", "transfer_encoding"])
def test_a_framing_that_a_gateway_may_find_under_another_name_is_refused(name: str) -> None:
    with pytest.raises(FramingError):
        read_request(f"POST / HTTP/1.1\r\n{name}: 5\r\n\r\n".encode())
    assert read_request(b"POST / HTTP/1.1\r\nX_Length: 5\r\n\r\n") is not None


def test_a_stream_of_a_known_length_that_is_edited_reaches_the_client_whole(tmp_path: Path) -> None:
    tools = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"evil"},{"name":"ok"}]}}'
    body = b"data: " + tools + b"\n\n: bye\n\n"
    hiding = policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}])
    streams = "content-type: text/event-stream"
    with through(tmp_path, hiding, lambda request: request.answer(body, headers=streams)) as (proxy, _):
        answer = proxy.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        assert answer.values("content-length") == []
        assert answer.body == body.replace(b'{"name":"evil"},', b"")


HTTP, HTTPS = Origin("http", "127.0.0.1", 81), Origin("https", "mcp.example", 443)
NAMED = Origin("http", "a.example", 8)


@pytest.mark.parametrize(
    ("upstream", "url", "ours"),
    [
        (HTTP, "http://127.0.0.1:81/mcp/?a=b", "http://p:1/mcp/?a=b"),
        (HTTP, "HTTP://LocalHost:81/mcp", "http://p:1/mcp"),
        (HTTP, "http://localhost.:81/mcp", "http://p:1/mcp"),
        (HTTP, "http://127.1:81", "http://p:1"),
        (HTTP, "http://[::1]:81/x", "http://p:1/x"),
        (HTTP, "//localhost:81/x", "http://p:1/x"),
        (HTTP, "http://127.0.0.1/mcp", None),
        (HTTP, "http://127.0.0.1:82/mcp", None),
        (HTTP, "/mcp", None),
        (HTTP, "http://:81/", None),
        (HTTP, "http://[127.0.0.1:81/", None),
        (HTTPS, "https://MCP.example./x", "http://p:1/x"),
        (HTTPS, "https://mcp.example:443/x", "http://p:1/x"),
        (HTTPS, "http://mcp.example/x", "http://p:1/x"),
        (HTTPS, "https://mcp.example:8443/x", None),
        (HTTPS, "https://other.example/x", None),
        (HTTPS, "ftp://mcp.example:443/x", None),
        (NAMED, "http://a.example:8/x", "http://p:1/x"),
        (NAMED, "https://a.example:8/x", "http://p:1/x"),
        (NAMED, "http://a.example/x", None),
    ],
)
def test_an_address_of_the_server_is_one_of_ours_however_it_is_spelled(
    upstream: Origin, url: str, ours: str | None
) -> None:
    assert at_proxy(url, upstream, "p:1") == (ours or url)
    assert at_proxy(url, upstream._replace(own=True), "p:1") == url
