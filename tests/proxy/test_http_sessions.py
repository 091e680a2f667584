"""Sessions over HTTP: one connection of the record each, whatever streams its messages come on."""

import hmac
import json
from pathlib import Path
from threading import Event

import pytest

from proxy import seats
from proxy import vocabulary as v
from tests.proxy.httpupstream import WAIT, Request
from tests.proxy.httpwires import JSON_TYPE, KEY, Client, through
from tests.proxy.wires import ALLOWING, call

HELLO = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
WELCOME = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
SESSION = (b"mcp-session-id", b"secret-session")
SAMPLING = b'{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}'


def data(body: bytes) -> bytes:
    return b"event: message\ndata: " + body + b"\n\n"


def server(request: Request) -> None:
    """A server of the old era: sessions, and a tool that samples in mid-call."""
    message = json.loads(request.body) if request.body else {}
    if message.get("method") == "initialize":
        request.answer(WELCOME.encode(), headers="mcp-session-id: secret-session\r\ncontent-type: application/json")
    elif request.method == "DELETE":
        request.answer(b"")
    else:
        request.answer(b"", "202 Accepted")


def test_a_session_is_one_connection_and_its_id_is_recorded_as_a_keyed_digest(tmp_path: Path) -> None:
    with through(tmp_path, ALLOWING, server) as (proxy, _):
        assert proxy.post(HELLO).values("mcp-session-id") == ["secret-session"]
        proxy.post('{"jsonrpc":"2.0","method":"notifications/initialized"}', SESSION)
        proxy.post(call("ok"), SESSION, (b"authorization", b"Bearer topsecret"), (b"cookie", b"topsecret"))
        assert proxy.ask("DELETE", "/mcp", None, [SESSION]).status == 200
        (file,) = proxy.folder.iterdir()
        text = file.read_text()
        assert "secret-session" not in text
        assert "topsecret" not in text
        digest = hmac.digest(KEY, b"secret-session", "sha256").hex()[:32]
        spans = proxy.spans()
    for span in spans:
        if span.attributes[v.SPAN_KIND] != "connection_opened":
            assert span.attributes[v.SESSION_ID] == digest
        assert (span.attributes[v.TRANSPORT], span.attributes[v.NETWORK_TRANSPORT]) == ("http", "tcp")
    (closed,) = [span for span in spans if span.attributes[v.SPAN_KIND] == "connection_closed"]
    assert closed.attributes[v.CLOSE_REASON] == "session_ended"
    assert closed.attributes[v.PROTOCOL_VERSION] == "2025-11-25"


def test_two_sessions_are_two_connections(tmp_path: Path) -> None:
    with through(tmp_path, ALLOWING) as (proxy, _):
        for number in (1, 2, 1):
            proxy.post(call("ok"), (b"mcp-session-id", b"%d" % number))
        found = [span.attributes[v.CONNECTION] for span in proxy.spans("request")]
    assert len(set(found)) == 2
    assert len(found) == 3


def test_a_request_of_the_server_in_mid_call_is_answered_by_a_post_of_its_own(tmp_path: Path) -> None:
    answered = Event()

    def samples(request: Request) -> None:
        message = json.loads(request.body)
        if message.get("method") == "tools/call":
            request.stream(data(SAMPLING))
            assert answered.wait(WAIT)
            request.chunk(data(RESULT))
            request.end()
        else:
            request.answer(b"", "202 Accepted")
            answered.set()

    with through(tmp_path, ALLOWING, samples) as (proxy, upstream), Client(proxy.port) as client:
        client.send("POST", "/mcp", call("ok").encode(), [JSON_TYPE, SESSION])
        client.head()
        assert client.chunk() == data(SAMPLING)
        reply = '{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant"}}'
        assert proxy.post(reply, SESSION).status == 202
        assert client.chunk() == data(RESULT)
        assert client.chunk() == b""
        assert upstream.requests[1].body == reply.encode()
        found = {span.attributes[v.METHOD]: span.attributes for span in proxy.spans("request")}
        assert proxy.spans("unmatched") == []
    assert found["sampling/createMessage"][v.DIRECTION] == "server_to_client"
    assert {one[v.OUTCOME] for one in found.values()} == {"ok"}


def test_an_answer_that_comes_on_the_listening_stream_ends_its_call_and_a_repeated_event_counts_once(
    tmp_path: Path,
) -> None:
    def resumes(request: Request) -> None:
        if request.method == "GET":
            event = b"id: 7\n" + data(RESULT)
            request.stream(event, event)
            request.end()
        else:
            request.stream(b"id: 6\ndata:\n\n")
            request.end()

    with through(tmp_path, ALLOWING, resumes) as (proxy, upstream):
        proxy.post(call("ok"), SESSION)
        for _ in range(2):
            proxy.ask("GET", "/mcp", None, [SESSION, (b"last-event-id", b"6")])
        assert upstream.requests[1].values("last-event-id") == ["6"]
        assert proxy.only("request").attributes[v.OUTCOME] == "ok"
        assert proxy.spans("unmatched") == []


def test_a_session_that_the_server_forgot_ends_there(tmp_path: Path) -> None:
    with through(tmp_path, ALLOWING, lambda request: request.answer(b"gone", "404 Not Found")) as (proxy, _):
        assert proxy.post(call("ok"), SESSION).body == b"gone"
        assert proxy.only("connection_closed").attributes[v.CLOSE_REASON] == "session_ended"


def test_a_server_without_sessions_has_one_connection_for_all(tmp_path: Path) -> None:
    def stateless(request: Request) -> None:
        message = json.loads(request.body)
        request.answer(WELCOME.encode() if message["method"] == "initialize" else RESULT)

    with through(tmp_path, ALLOWING, stateless) as (proxy, _):
        proxy.post(HELLO)
        proxy.post(call("ok"))
        proxy.post(HELLO)
        proxy.post(call("ok"))
        calls = [span for span in proxy.spans("request") if span.attributes[v.METHOD] == "tools/call"]
    assert len({span.attributes[v.CONNECTION] for span in calls}) == 1
    assert {span.attributes[v.PROTOCOL_VERSION] for span in calls} == {"2025-11-25"}


@pytest.mark.parametrize("absolute", [False, True])
def test_the_older_transport_with_an_event_stream_passes(tmp_path: Path, absolute: bool) -> None:
    posted = Event()
    streams: list[Request] = []

    def old(request: Request) -> None:
        if request.method == "GET":
            streams.append(request)
            base = f"http://{request.values('host')[0]}" if absolute else ""
            request.stream(f"event: endpoint\ndata: {base}/messages/?session_id=secret-session\n\n".encode())
            assert posted.wait(WAIT)
            request.chunk(data(RESULT))
            assert request.gone()
        else:
            request.answer(b"Accepted", "202 Accepted", "content-type: text/plain")
            posted.set()

    with through(tmp_path, ALLOWING, old) as (proxy, upstream):
        client = Client(proxy.port)
        client.send("GET", "/sse", None, [(b"accept", b"text/event-stream")])
        client.head()
        base = f"http://127.0.0.1:{proxy.port}" if absolute else ""
        assert client.chunk() == f"event: endpoint\ndata: {base}/messages/?session_id=secret-session\n\n".encode()
        assert proxy.post(call("ok"), target="/messages/?session_id=secret-session").status == 202
        assert client.chunk() == data(RESULT)
        client.close()
        upstream.close()
        assert proxy.only("request").attributes[v.OUTCOME] == "ok"
        (closed,) = proxy.spans("connection_closed")
    assert "secret-session" not in str(closed.attributes)


def test_of_too_many_sessions_the_one_that_was_used_least_lately_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "MOST", 3)
    with through(tmp_path, ALLOWING) as (proxy, _):
        for number in (1, 2, 3, 1, 4, 5):
            proxy.post(call("ok"), (b"mcp-session-id", b"%d" % number))
        assert len(proxy.app.asking.seats._all) == 3
        reasons = [span.attributes[v.CLOSE_REASON] for span in proxy.spans("connection_closed")]
    assert sorted(str(reason) for reason in reasons) == ["client_ended"] * 3 + ["idle"] * 2


def test_two_listening_streams_get_what_the_server_sends_each(tmp_path: Path) -> None:
    streams: dict[str, Request] = {}
    both = Event()

    def listen(request: Request) -> None:
        request.stream(b": open\n\n")
        streams[request.values("x-number")[0]] = request
        if len(streams) == 2:
            both.set()

    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}'
    with through(tmp_path, ALLOWING, listen) as (proxy, _), Client(proxy.port) as one, Client(proxy.port) as two:
        for number, client in ((b"1", one), (b"2", two)):
            client.send("GET", "/mcp", None, [SESSION, (b"x-number", number)])
            client.head()
            assert client.chunk() == b": open\n\n"
        assert both.wait(WAIT)
        for name, client in (("2", two), ("1", one), ("2", two)):
            streams[name].chunk(data(note % int(name)))
            assert client.chunk() == data(note % int(name))
        for stream in streams.values():
            stream.end()
        assert (one.chunk(), two.chunk()) == (b"", b"")
        assert len(proxy.spans("notification")) == 3


def test_a_client_whose_session_the_restarted_server_lost_is_told_404_and_begins_anew(tmp_path: Path) -> None:
    known = {"first"}

    def restarts(request: Request) -> None:
        message = json.loads(request.body)
        if message["method"] == "initialize":
            known.add("second")
            request.answer(WELCOME.encode(), headers="mcp-session-id: second")
        elif request.values("mcp-session-id")[0] in known:
            request.answer(RESULT)
        else:
            request.answer(b'{"error":"Session not found"}', "404 Not Found")

    with through(tmp_path, ALLOWING, restarts) as (proxy, upstream):
        assert proxy.post(call("ok"), (b"mcp-session-id", b"first")).status == 200
        known.clear()
        assert proxy.post(call("ok"), (b"mcp-session-id", b"first")).status == 404
        assert proxy.post(HELLO).values("mcp-session-id") == ["second"]
        assert proxy.post(call("ok"), (b"mcp-session-id", b"second")).status == 200
        assert len(upstream.requests) == 4
        calls = [span for span in proxy.spans("request") if span.attributes[v.METHOD] == "tools/call"]
        closed = {span.attributes[v.CLOSE_REASON] for span in proxy.spans("connection_closed")}
    assert sorted(str(one.attributes[v.OUTCOME]) for one in calls) == ["ok", "ok", "protocol_error"]
    assert [one.attributes[v.HTTP_STATUS] for one in calls if v.HTTP_STATUS in one.attributes] == [404]
    assert closed == {"session_ended", "client_ended"}
