"""Both ends over HTTP go on at once, together, and end together."""

import json
import socket
from pathlib import Path
from threading import Event

import pytest

from proxy import vocabulary as v
from tests.proxy.httpmessages import MODERN, OK, RESULT, data
from tests.proxy.httpupstream import WAIT, Request
from tests.proxy.httpwires import JSON_TYPE, Client, through
from tests.proxy.wires import ALLOWING, call


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
