"""A bridge as its clients see it: sessions, streams, ids, cancellation and the end of a server."""

import json
from pathlib import Path

from proxy import vocabulary as v
from proxy.refusals import SERVER_ENDED
from proxy.spans import JSON
from tests.proxy.bridgewires import HELLO, Server, bridged, echo, events, modern, told
from tests.proxy.httpwires import JSON_TYPE, Client
from tests.proxy.wires import call

LIST_CHANGED: JSON = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def silent(server: Server, message: JSON) -> None:
    """Answer what opens a session, and nothing else."""
    if isinstance(message, dict) and message.get("method") == "initialize":
        echo(server, message)


def test_in_the_old_era_each_session_has_a_server_of_its_own_until_it_is_deleted(tmp_path: Path) -> None:
    with bridged(tmp_path) as bridge:
        one, other = bridge.open(), bridge.open()
        first, second = bridge.children.servers
        assert bridge.post(call("ok", id_text="7"), one).json == {
            "jsonrpc": "2.0",
            "id": 7,
            "result": {"content": []},
        }
        assert (len(first.lines), len(second.lines)) == (2, 1)
        assert bridge.ask("DELETE", one).status == 204
        first.wait(lambda server: server.ended)
        gone = bridge.post(call("ok"), one)
        assert gone.status == 404
        assert bridge.ask("GET", one).status == 404
        assert bridge.ask("DELETE", one).status == 404
        assert bridge.post(call("ok"), other).status == 200
        assert not second.ended
        connections = {span.attributes[v.CONNECTION] for span in bridge.spans("connection_opened")}
    assert {first.connection, second.connection} <= connections
    assert first.connection != second.connection


def test_a_server_gets_each_message_as_one_line_with_the_clients_own_text(tmp_path: Path) -> None:
    with bridged(tmp_path) as bridge:
        session = bridge.open()
        body = '{\r\n  "jsonrpc": "2.0",\n  "id": 1.50,\n  "method": "tools/call", "params": {"name": "\\u006fk"}\n}\n'
        answer = bridge.post(body, session)
        assert b'"id": 1.5' in answer.body
        assert (
            bridge.children.servers[0].lines[1] == body.strip().replace("\r", " ").replace("\n", " ").encode() + b"\n"
        )
        assert bridge.post('{"jsonrpc":"2.0","method":"notifications/x"}', session).status == 202
        assert bridge.post('{"jsonrpc":"2.0","id":1,"result":{}}', session).status == 202


def test_clients_of_the_new_era_share_a_server_and_each_sees_its_own_id_and_token(tmp_path: Path) -> None:
    asked: list[dict[str, JSON]] = []

    def reversed_order(server: Server, message: JSON) -> None:
        assert isinstance(message, dict)
        asked.append(message)
        if len(asked) < 3:
            return
        for one in reversed(asked):
            params = one["params"]
            assert isinstance(params, dict)
            meta = params["_meta"]
            assert isinstance(meta, dict)
            note: dict[str, JSON] = {"progressToken": meta["progressToken"], "progress": 1}
            server.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": note})
            server.result(one, said=params["name"])

    with bridged(tmp_path, reversed_order) as bridge:
        clients = [Client(bridge.port) for _ in range(3)]
        for at, (client, id_text) in enumerate(zip(clients, ("1", '"1"', "1.0"), strict=True)):
            meta = '"progressToken":"\\u0074",' if at else '"progressToken":7,'
            body = modern(id_text=id_text, meta=meta, name=f"t{at}").encode()
            client.send("POST", "/mcp", body, told(name=f"t{at}"))
            if at == 0:
                # Nobody waits for the order in which they come in, only for the server to be there.
                bridge.children.nth(0)
        answers = [client.rest(client.head()) for client in clients]
        for client in clients:
            client.close()
        (server,) = bridge.children.servers
        assert len({str(one["id"]) for one in server.messages}) == 3
        for at, (answer, id_text) in enumerate(zip(answers, ("1", '"1"', "1.0"), strict=True)):
            assert answer.values("content-type") == ["text/event-stream"]
            progress, result = answer.body.split(b"\n\n")[:2]
            assert (b'"\\u0074"' if at else b'"progressToken": 7') in progress
            assert f'"id": {id_text},'.encode() in result
            assert f'"said": "t{at}"'.encode() in result
        requests = bridge.spans("request")
        assert {span.attributes[v.ID_TEXT] for span in requests} == {"1", '"1"', "1.0"}
        assert {span.attributes[v.OUTCOME] for span in requests} == {"ok"}


def test_in_the_new_era_a_client_that_closes_its_stream_cancels_and_in_the_old_one_it_does_not(tmp_path: Path) -> None:
    with bridged(tmp_path, silent) as bridge:
        with Client(bridge.port) as client:
            client.send("POST", "/mcp", modern(name="ok").encode(), told(name="ok"))
            shared = bridge.children.nth(0)
            shared.wait(lambda server: len(server.lines) == 1)
        shared.wait(lambda server: len(server.lines) == 2)
        request, cancel = shared.messages
        assert cancel["method"] == "notifications/cancelled"
        params = cancel["params"]
        assert isinstance(params, dict)
        assert params["requestId"] == request["id"]
        shared.result(request)  # a late answer is nobody's

        session = bridge.open()
        own = bridge.children.servers[1]
        with Client(bridge.port) as client:
            client.send("POST", "/mcp", call("ok").encode(), session)
            own.wait(lambda server: len(server.lines) == 2)
        bridge.post('{"jsonrpc":"2.0","method":"notifications/x"}', session)
        own.wait(lambda server: len(server.lines) == 3)
        assert [one["method"] for one in own.messages] == ["initialize", "tools/call", "notifications/x"]
        outcomes = {span.attributes[v.CONNECTION]: span.attributes[v.OUTCOME] for span in bridge.spans("request")
                    if span.attributes[v.METHOD] == "tools/call"}  # fmt: skip
    assert outcomes == {shared.connection: "cancelled", own.connection: "unanswered"}


def test_what_a_server_asks_goes_on_the_stream_of_the_call_and_what_nobody_asked_for_on_the_listening_one(
    tmp_path: Path,
) -> None:
    def asks(server: Server, message: JSON) -> None:
        assert isinstance(message, dict)
        if message.get("method") == "tools/call":
            server.send(b'{"jsonrpc":"2.0","id":"s1",\r"method":"sampling/createMessage","params":{}}')
            server.send(LIST_CHANGED)
        elif message.get("id") == "s1":
            server.result({"id": 1}, said="done")
        else:
            if message.get("method") == "initialize":
                server.send(LIST_CHANGED)
            echo(server, message)

    with bridged(tmp_path, asks) as bridge:
        session = bridge.open()
        with Client(bridge.port) as listening, Client(bridge.port) as calling:
            listening.send("GET", "/mcp", None, [*session, (b"accept", b"text/event-stream")])
            assert listening.head().values("content-type") == ["text/event-stream"]
            # What came before anybody listened has waited.
            assert events(listening.until(b"list_changed")) == [LIST_CHANGED]
            calling.send("POST", "/mcp", call("ok").encode(), session)
            assert calling.head().values("content-type") == ["text/event-stream"]
            assert b"sampling/createMessage" in calling.until(b"\n\n")
            assert events(listening.until(b"list_changed")) == [LIST_CHANGED]
            assert bridge.post('{"jsonrpc":"2.0","id":"s1","result":{"ok":1}}', session).status == 202
            assert b'"done"' in calling.until(b"done")
        sampling = [span for span in bridge.spans("request") if span.attributes[v.METHOD] == "sampling/createMessage"]
    assert [span.attributes[v.OUTCOME] for span in sampling] == ["ok"]


def test_a_subscription_of_the_new_era_has_its_clients_id_and_ends_when_the_server_ends_it(tmp_path: Path) -> None:
    key = "io.modelcontextprotocol/subscriptionId"

    def listens(server: Server, message: JSON) -> None:
        assert isinstance(message, dict)
        for method in ("notifications/subscriptions/acknowledged", "notifications/tools/list_changed"):
            server.send({"jsonrpc": "2.0", "method": method, "params": {"_meta": {key: message["id"]}}})
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}})

    with bridged(tmp_path, listens) as bridge:
        method = "subscriptions/listen"
        answer = bridge.post(modern(method, '"mine"'), told(method))
        found = events(answer.body)
        assert [one["params"] for one in found if isinstance(one, dict)] == [{"_meta": {key: "mine"}}] * 2


def test_a_server_that_ends_is_told_as_ours_and_the_next_request_of_the_new_era_has_a_new_one(tmp_path: Path) -> None:
    def dies(server: Server, message: JSON) -> None:
        assert isinstance(message, dict)
        if "tools/call" in str(message.get("method")):
            if "late" in json.dumps(message):
                server.send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "working"}})
            server.exit()
        else:
            echo(server, message)

    with bridged(tmp_path, dies) as bridge:
        session = bridge.open()
        for answer in (
            bridge.post(call("ok", id_text='"a"'), session),
            bridge.post(modern(name="ok"), told(name="ok")),
        ):
            assert answer.status == 502
            failure = json.loads(answer.body)["error"]
            assert (failure["code"], failure["data"]["wiretrap"]["code"]) == (SERVER_ENDED, SERVER_ENDED)
        assert bridge.post(call("ok"), session).status == 404
        assert bridge.post(modern("tools/list"), told("tools/list")).status == 200
        again = bridge.open()
        late = bridge.post(call("late"), again)
        assert (late.status, late.values("content-type")) == (200, ["text/event-stream"])
        note, error = events(late.body)
        assert isinstance(note, dict)
        assert isinstance(error, dict)
        assert isinstance(error["error"], dict)
        assert (note["method"], error["id"], error["error"]["code"]) == ("notifications/message", 1, SERVER_ENDED)
        assert len(bridge.children.servers) == 4
        calls = [span for span in bridge.spans("request") if span.attributes[v.METHOD] == "tools/call"]
    assert [span.attributes.get(v.REFUSED_BY_US) for span in calls] == [True] * 4
    assert {span.attributes[v.OUTCOME] for span in calls} == {"protocol_error"}


def test_an_array_goes_on_in_the_one_protocol_that_has_them(tmp_path: Path) -> None:
    def answers(server: Server, message: JSON) -> None:
        if message is None:
            both = [{"jsonrpc": "2.0", "id": one["id"], "result": {}} for one in json.loads(server.lines[-1])]
            for one in both:
                server.send(one)
        else:
            echo(server, message)

    with bridged(tmp_path, answers) as bridge:
        array = f"[{call('ok', id_text='1')},\n{call('ok', id_text='2')}]"
        old, new = bridge.open("2025-03-26"), bridge.open("2025-11-25")
        answer = bridge.post(array, old)
        assert [one["id"] for one in events(answer.body) if isinstance(one, dict)] == [1, 2]
        assert bridge.post(array, new).status == 400
        assert len(bridge.children.servers[1].lines) == 1


def test_an_answer_that_is_too_long_becomes_an_error_under_its_id(tmp_path: Path) -> None:
    def long(server: Server, message: JSON) -> None:
        if isinstance(message, dict) and message.get("method") == "initialize":
            echo(server, message)
        else:
            server.result(message, said="x" * 17_000_000)

    with bridged(tmp_path, long) as bridge:
        answer = bridge.post(call("ok", id_text="5"), bridge.open())
        assert isinstance(answer.json, dict)
        assert answer.json["id"] == 5
        assert "longer" in str(answer.json["error"])


def test_a_path_a_method_and_a_type_that_are_none_of_ours_are_told(tmp_path: Path) -> None:
    with bridged(tmp_path) as bridge:
        session = bridge.open()
        plain = (b"content-type", b"text/plain")
        assert bridge.ask("GET", session, "/.well-known/oauth-protected-resource").status == 404
        assert bridge.ask("PUT", session).status == 405
        assert bridge.ask("GET", [(b"mcp-protocol-version", b"2026-07-28")]).values("allow") == ["POST"]
        assert bridge.ask("GET", [(b"accept", b"application/json"), *session]).status == 406
        assert bridge.ask("GET", []).status == 400
        assert bridge.post(call("ok"), [plain, *session[1:]]).status == 415
        assert bridge.post(call("ok"), [*session, (b"accept", b"application/json")]).status == 406
        assert bridge.post(call("ok"), [*session[:2], (b"mcp-protocol-version", b"1999-01-01")]).status == 400
        assert bridge.post(b"{", session).status == 400
        assert bridge.post(call("ok", id_text="null"), session).status == 400
        assert bridge.post(HELLO % "2025-11-25", session).status == 400
        assert bridge.post(call("ok"), [*session, (b"host", b"evil.example")]).status == 421
        assert bridge.post(call("ok"), [*session, (b"origin", b"http://evil.example")]).status == 403
        assert len(bridge.children.servers[0].lines) == 1


def test_what_a_bridge_refuses_by_itself_is_recorded_as_its_own(tmp_path: Path) -> None:
    with bridged(tmp_path) as bridge:
        answer = bridge.post(call("ok"), [JSON_TYPE, (b"mcp-session-id", b"unknown")])
        assert answer.status == 404
        (request,) = bridge.spans("request")
    assert request.attributes[v.OUTCOME] == "protocol_error"
    assert request.attributes[v.REFUSED_BY_US] is True
