"""Stdio in front of a scripted server over HTTP: headers, sessions, streams, errors and the end, over real sockets."""

import json
from pathlib import Path
from threading import Event, Thread

from proxy import vocabulary as v
from proxy.refusals import DENIED, NOT_READABLE, SERVER_ENDED
from proxy.spans import JSON
from tests.proxy.bridgewires import modern
from tests.proxy.connectwires import READY, connected, method_of, session
from tests.proxy.deniedlines import DENIED_ONES, NESTED, UNREADABLE, code_of
from tests.proxy.httpupstream import WAIT, Request, echo
from tests.proxy.wires import EVIL, call, policy_of


def test_a_session_of_the_old_era_keeps_its_headers_listens_and_is_ended(tmp_path: Path) -> None:
    listening = Event()

    def rest(request: Request) -> None:
        if request.method == "GET":
            request.stream(b'data: {"jsonrpc":"2.0",\ndata: "method":"notifications/x"}\n\n')
            listening.set()
            request.gone()
        else:
            echo(request)

    with connected(tmp_path, session(rest), headers=[(b"authorization", b"Bearer sesame-1")]) as one:
        one.begin()
        one.send(READY)
        assert one.read() == {"jsonrpc": "2.0", "method": "notifications/x"}
        assert listening.is_set()
        one.send('{"jsonrpc": "2.0", "id": 1.50, "method": "tools/call", "params": {"name": "\\u006fk"}}')
        assert one.read()["id"] == 1.5
        one.end()
        first, *others = one.upstream.requests
        assert first.values("mcp-session-id") == first.values("mcp-protocol-version") == []
        assert sorted(request.method for request in others) == ["DELETE", "GET", "POST", "POST"]
        assert others[-1].method == "DELETE"
        for request in others:
            assert request.values("mcp-session-id") == ["s1"]
            assert request.values("mcp-protocol-version") == ["2025-11-25"]
            assert request.values("mcp-method") == []
        assert {request.values("authorization")[0] for request in one.upstream.requests} == {"Bearer sesame-1"}
        assert {request.target for request in one.upstream.requests} == {"/mcp"}
        (called,) = [request.body for request in others if b"tools/call" in request.body]
        assert called == b'{"jsonrpc": "2.0", "id": 1.50, "method": "tools/call", "params": {"name": "\\u006fk"}}'
        (closed,) = one.spans("connection_closed")
    assert closed.attributes[v.CLOSE_REASON] == "client_ended"


def test_a_request_of_the_new_era_says_in_its_headers_what_its_body_says(tmp_path: Path) -> None:
    schema: JSON = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "Num"}}}

    def lists(request: Request) -> None:
        if method_of(request) == "tools/list":
            result: JSON = {"tools": [{"name": "größe", "inputSchema": schema}], "resultType": "complete"}
            request.answer(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
        else:
            echo(request)

    with connected(tmp_path, lists) as one:
        one.send(modern("tools/list"))
        one.read()
        one.send(modern(name="größe", id_text="2", arguments={"n": 4}))
        one.read()
        first, second = one.upstream.requests
        assert (first.values("mcp-method"), first.values("mcp-name")) == (["tools/list"], [])
        assert second.values("mcp-protocol-version") == ["2026-07-28"]
        assert second.values("mcp-name") == ["=?base64?Z3LDtsOfZQ==?="]
        assert second.values("mcp-param-num") == ["4"]
        assert second.values("mcp-session-id") == []
        one.end()
        assert len(one.upstream.requests) == 2


def test_a_cancellation_closes_the_stream_in_the_new_era_and_is_posted_in_the_old_one(tmp_path: Path) -> None:
    came, gone = Event(), Event()

    def rest(request: Request) -> None:
        came.set()
        if request.method == "GET":
            request.answer(b"", "405 Method Not Allowed")
        elif request.gone():
            gone.set()

    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    (tmp_path / "new").mkdir()
    with connected(tmp_path / "new", rest) as one:
        one.send(modern(name="ok"))
        assert came.wait(WAIT)
        one.send(cancel)
        assert gone.wait(WAIT)
        assert [method_of(request) for request in one.upstream.requests] == ["tools/call"]
        (request,) = one.spans("request")
        assert request.attributes[v.OUTCOME] == "cancelled"

    came.clear()
    posted = Event()
    waiting: list[Request] = []

    def old(request: Request) -> None:
        if method_of(request) == "tools/call":
            waiting.append(request)
            came.set()
        elif method_of(request) == "notifications/cancelled":
            waiting[0].answer(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}')
            request.answer(b"", "202 Accepted")
            posted.set()
        else:
            session(rest)(request)

    (tmp_path / "old").mkdir()
    with connected(tmp_path / "old", old) as one:
        one.begin()
        one.send(call("ok"))
        assert came.wait(WAIT)
        one.send(cancel)
        assert posted.wait(WAIT)
        assert one.read()["id"] == 1


def test_a_client_that_asks_in_the_new_era_first_may_go_on_in_the_old_one(tmp_path: Path) -> None:
    def old(request: Request) -> None:
        if method_of(request) == "server/discover":
            request.answer(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}', "404 Not Found")
        else:
            session(echo)(request)

    with connected(tmp_path, old) as one:
        one.send(modern("server/discover"))
        assert isinstance(error := one.read()["error"], dict)
        assert error["code"] == -32601
        one.begin()
        one.send(call("ok"))
        assert one.read()["id"] == 1
        _, hello, called = one.upstream.requests
        assert hello.values("mcp-protocol-version") == hello.values("mcp-method") == []
        assert called.values("mcp-protocol-version") == ["2025-11-25"]


ERRORS: list[tuple[str, bytes, int | None]] = [
    ("401 Unauthorized", b"<html>who are you?</html>", 401),
    ("401 Unauthorized", b'{"error":"invalid_token","error_description":"no"}', 401),
    ("404 Not Found", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no such session"}}', None),
    ("400 Bad Request", b'{"jsonrpc":"2.0","id":"a","error":{"code":-32020,"message":"mismatch"}}', None),
    ("302 Found", b"", 302),
    ("200 OK", b"<html>a portal</html>", 0),
]


def test_an_http_error_becomes_an_error_that_says_whose_it_is(tmp_path: Path) -> None:
    answers = iter(ERRORS)

    def fails(request: Request) -> None:
        status, body, _ = next(answers)
        kind = "application/json" if body.startswith(b"{") else "text/html"
        request.answer(body, status, f"content-type: {kind}")

    with connected(tmp_path, fails) as one:
        for status, body, ours in ERRORS:
            one.send(call("ok", id_text='"a"'))
            answer = one.read()
            assert answer["id"] == "a"
            error = answer["error"]
            assert isinstance(error, dict)
            if ours is None:
                assert error == json.loads(body)["error"]
            else:
                assert error["code"] == SERVER_ENDED
                assert (status.partition(" ")[0] in str(error["message"])) is bool(ours)
        requests = one.spans("request")
    told = [(span.attributes.get(v.HTTP_STATUS), span.attributes.get(v.REFUSED_BY_US)) for span in requests]
    assert told == [(401, None), (401, None), (None, None), (None, None), (302, None), (None, True)]
    assert {span.attributes[v.OUTCOME] for span in requests} == {"protocol_error"}


def test_a_stream_that_breaks_off_is_taken_up_again_where_it_was(tmp_path: Path) -> None:
    answer = b'id: e3\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'

    def breaks(request: Request) -> None:
        if request.method == "GET" and request.values("last-event-id"):
            request.stream(answer)
            request.end()
        elif request.method == "GET":
            request.answer(b"", "405 Method Not Allowed")
        else:
            request.stream(
                b'retry: 5\nid: e1\ndata: \n\nid: e2\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'
            )
            request.end()

    with connected(tmp_path, session(breaks)) as one:
        one.begin()
        one.send(call("ok"))
        assert one.read()["method"] == "notifications/x"
        assert one.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        (again,) = [request for request in one.upstream.requests if request.method == "GET"]
        assert again.values("last-event-id") == ["e2"]
        assert [span.attributes[v.OUTCOME] for span in one.spans("request")] == ["ok", "ok"]


def test_a_stream_that_ends_without_an_answer_and_a_server_that_is_not_there_are_told(tmp_path: Path) -> None:
    def ends(request: Request) -> None:
        request.stream(b": nothing\n\n")
        request.end()

    with connected(tmp_path, ends) as one:
        one.send(modern(name="ok"))
        first = one.read()
        one.upstream.close()
        one.send(modern(name="ok", id_text="2"))
        second = one.read()
        for answer, id_ in ((first, 1), (second, 2)):
            assert answer["id"] == id_
            assert isinstance(answer["error"], dict)
            assert answer["error"]["code"] == SERVER_ENDED
        assert [span.attributes[v.REFUSED_BY_US] for span in one.spans("request")] == [True, True]


def test_at_the_end_of_input_what_is_open_is_finished_and_a_subscription_is_given_up(tmp_path: Path) -> None:
    came = [Event(), Event()]
    go_on = Event()

    def slow(request: Request) -> None:
        if method_of(request) == "subscriptions/listen":
            request.stream(b": open\n\n")
            came[0].set()
            request.gone()
        else:
            came[1].set()
            assert go_on.wait(WAIT)
            echo(request)

    with connected(tmp_path, slow) as one:
        one.send(modern("subscriptions/listen", '"s"'), modern(name="ok"))
        assert all(event.wait(WAIT) for event in came)
        Thread(target=one.end).start()
        go_on.set()
        assert one.read()["id"] == 1
        assert one.ended.wait(WAIT)
        outcomes = {span.attributes[v.METHOD]: span.attributes[v.OUTCOME] for span in one.spans("request")}
    assert outcomes == {"tools/call": "ok", "subscriptions/listen": "unanswered"}


def test_no_spelling_of_a_denied_call_reaches_the_server(tmp_path: Path) -> None:
    lines = [text.encode() for text, _ in DENIED_ONES.values()]
    lines += [line for line, _ in (*UNREADABLE.values(), *NESTED.values()) if len(line) < 50_000 and b"\n" not in line]
    with connected(tmp_path, policy=EVIL) as one:
        one.send(*lines, call("ok", id_text='"last"'))
        refused: list[JSON] = []
        while b'"last"' not in (line := one.output.readline()):
            answer: JSON = json.loads(line, parse_int=float)
            refused += answer if isinstance(answer, list) else [answer]
        assert {code_of(answer) for answer in refused} == {DENIED, NOT_READABLE}
        assert [request.body for request in one.upstream.requests] == [call("ok", id_text='"last"').encode()]
        denied = [span for span in one.spans("decision") if span.attributes[v.DECISION] == "deny"]
        assert len(denied) >= len(lines)


def test_what_policy_denies_a_server_is_answered_to_it_and_does_not_reach_the_client(tmp_path: Path) -> None:
    answered = Event()

    def asks(request: Request) -> None:
        if method_of(request) == "tools/call":
            request.stream(b'data: {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}\n\n')
            assert answered.wait(WAIT)
            request.chunk(b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n')
            request.end()
        elif method_of(request) == "answer":
            answered.set()
            request.answer(b"", "202 Accepted")
        else:
            session(echo)(request)

    with connected(tmp_path, asks, policy_of(client_requests={"sampling": "deny"})) as one:
        one.begin()
        one.send(call("ok"))
        assert one.read()["id"] == 1
        reply = next(request for request in one.upstream.requests if method_of(request) == "answer")
        assert json.loads(reply.body)["error"]["code"] == DENIED
        assert reply.values("mcp-session-id") == ["s1"]


def test_a_client_that_does_not_listen_any_more_ends_it(tmp_path: Path) -> None:
    with connected(tmp_path) as one:
        one.output.close()
        one.send(call("ok"))
        assert one.ended.wait(WAIT)
        (closed,) = one.spans("connection_closed")
    assert closed.attributes[v.CLOSE_REASON] == "client_ended"
