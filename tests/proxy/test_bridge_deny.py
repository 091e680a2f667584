"""Nothing that policy denies reaches a server behind a bridge, and nothing that a server over HTTP must refuse."""

import gzip
import json
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.httpwords import Headers
from proxy.refusals import DENIED
from proxy.spans import JSON
from tests.proxy.bridgewires import Server, bridged, echo, modern, told
from tests.proxy.deniedlines import DENIED_ONES, NESTED, UNREADABLE, code_of
from tests.proxy.httpwires import JSON_TYPE, Client
from tests.proxy.wires import EVIL, call, policy_of

VERSION = (b"mcp-protocol-version", b"2026-07-28")
METHOD = (b"mcp-method", b"tools/call")
LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def test_no_spelling_of_a_denied_call_reaches_a_server_in_either_era(tmp_path: Path) -> None:
    bodies = [text.encode() for text, _ in DENIED_ONES.values()]
    # The deepest ones take seconds to be found unreadable, and are no others than over `proxy http`.
    bodies += [line for line, _ in (*UNREADABLE.values(), *NESTED.values()) if len(line) < 50_000]
    with bridged(tmp_path, policy=EVIL) as bridge:
        session = bridge.open()
        for body in bodies:
            for headers in (session, told(name="evil"), told(name="ok"), [JSON_TYPE]):
                assert bridge.post(body, headers).status in {200, 400, 404}
        denied = bridge.post(modern(name="evil"), told(name="evil"))
        assert (denied.status, code_of(denied.json)) == (200, DENIED)
        assert bridge.post(call("ok"), session).status == 200
        assert bridge.post(modern(name="ok"), told(name="ok")).status == 200
        own, shared = bridge.children.servers
        assert own.lines[1:] == [call("ok").encode() + b"\n"]
        assert [one["method"] for one in shared.messages] == ["tools/call"]
        decisions = [span.attributes[v.DECISION] for span in bridge.spans("decision")]
    assert decisions.count("deny") >= 4 * len(bodies)


FAULTS: dict[str, tuple[str, Headers, int, int]] = {
    "no version": (modern(name="ok"), [JSON_TYPE, METHOD, (b"mcp-name", b"ok")], 400, -32020),
    "another version": (
        modern(name="ok"),
        [JSON_TYPE, METHOD, (b"mcp-name", b"ok"), (b"mcp-protocol-version", b"2027-01-01")],
        400,
        -32020,
    ),
    "no method": (modern(name="ok"), [JSON_TYPE, VERSION, (b"mcp-name", b"ok")], 400, -32020),
    "another method": (modern(name="ok"), told("tools/list", "ok"), 400, -32020),
    "no name": (modern(name="ok"), told(), 400, -32020),
    "another name": (modern(name="ok"), told(name="fine"), 400, -32020),
    "the name twice": (modern(name="ok"), [*told(name="ok"), (b"mcp-name", b"ok")], 400, -32020),
    "a name that cannot be decoded": (modern(name="ok"), told(name="=?base64?b2?="), 400, -32020),
    "a name for a uri": (modern("resources/read", uri="a:b"), told("resources/read", "a:c"), 400, -32020),
    "no envelope": (call("ok"), told(name="ok"), 400, -32602),
    "initialize": (modern("initialize"), told("initialize"), 404, -32601),
    "an array": (f"[{modern(name='ok')}]", told(name="ok"), 400, -32600),
    "no JSON": ("{", told(name="ok"), 400, -32700),
    "two readings": (modern(name="ok").replace('"id":1', '"id":1,"id":2'), told(name="ok"), 400, -32600),
    "no session": (call("ok"), [JSON_TYPE], 400, -32600),
}


@pytest.mark.parametrize("policy", [None, EVIL], ids=["no policy", "a policy"])
def test_a_request_that_a_server_over_http_must_refuse_is_refused_with_its_code(tmp_path: Path, policy: object) -> None:
    with bridged(tmp_path, policy=EVIL if policy else None) as bridge:
        for name, (body, headers, status, code) in FAULTS.items():
            answer = bridge.post(body, headers)
            failure = json.loads(answer.body)["error"]
            own = not policy or name not in {"no JSON", "two readings"}
            assert (answer.status, failure["code"]) == (status, code) or not own, name
            assert failure["data"]["wiretrap"]["code"] == failure["code"], name
        packed = bridge.post(gzip.compress(call("ok").encode()), [JSON_TYPE, (b"content-encoding", b"gzip")])
        assert packed.status == 415
        assert bridge.children.servers == []


def test_headers_of_arguments_must_say_what_the_arguments_say_once_the_tools_are_known(tmp_path: Path) -> None:
    schema: JSON = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "Num"}}}

    def lists(server: Server, message: object) -> None:
        assert isinstance(message, dict)
        if message["method"] == "tools/list":
            server.result(message, tools=[{"name": "ok", "inputSchema": schema}])
        else:
            echo(server, message)

    param = b"mcp-param-num"
    with bridged(tmp_path, lists) as bridge:
        asked = modern(name="ok", arguments={"n": 4})
        assert bridge.post(asked, told(name="ok")).status == 200
        assert bridge.post(modern("tools/list"), told("tools/list")).status == 200
        for given in ([], [(param, b"5")], [(param, b"4"), (param, b"4")], [(param, b"=?base64?!?=")]):
            assert bridge.post(asked, [*told(name="ok"), *given]).status == 400
        for value in (b"4", b"4.0", b"=?base64?NA==?="):
            assert bridge.post(asked, [*told(name="ok"), (param, value)]).status == 200
        assert bridge.post(modern(name="ok"), [*told(name="ok"), (param, b"4")]).status == 400


def test_an_error_of_the_server_has_the_status_of_its_era(tmp_path: Path) -> None:
    def fails(server: Server, message: object) -> None:
        assert isinstance(message, dict)
        if message["method"] == "initialize":
            echo(server, message)
        else:
            code = int(message["params"]["name"])
            server.send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}})

    with bridged(tmp_path, fails) as bridge:
        session = bridge.open()
        for code, status in ((-32601, 404), (-32602, 400), (-32022, 400), (-32603, 200), (7, 200)):
            assert bridge.post(modern(name=str(code)), told(name=str(code))).status == status
            assert bridge.post(call(str(code)), session).status == 200


def test_a_cancellation_that_is_posted_names_the_request_as_the_server_knows_it(tmp_path: Path) -> None:
    def cancelled(server: Server, message: object) -> None:
        assert isinstance(message, dict)
        if message["method"] == "notifications/cancelled":
            server.result({"id": message["params"]["requestId"]})

    body = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine"}}'
    with bridged(tmp_path, cancelled) as bridge, Client(bridge.port) as client:
        client.send("POST", "/mcp", modern(id_text='"mine"', name="ok").encode(), told(name="ok"))
        server = bridge.children.nth(0)
        server.wait(lambda one: len(one.lines) == 1)
        assert bridge.post(body, told("notifications/cancelled")).status == 202
        assert b'"mine"' in client.rest(client.head()).body


def test_what_policy_keeps_from_a_client_does_not_reach_it_and_the_server_is_answered(tmp_path: Path) -> None:
    def asks(server: Server, message: object) -> None:
        assert isinstance(message, dict)
        if message.get("method") == "tools/call":
            server.send({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {}})
        elif message.get("id") == "s1":
            server.result({"id": 1}, said=message["error"]["code"])
        elif message.get("method") == "tools/list":
            server.result(message, tools=[{"name": "ok"}, {"name": "evil"}])
        else:
            echo(server, message)

    policy = policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}], client_requests={"sampling": "deny"})
    with bridged(tmp_path, asks, policy) as bridge:
        session = bridge.open()
        answer = bridge.post(call("ok"), session)
        assert b"sampling" not in answer.body
        assert f'"said": {DENIED}'.encode() in answer.body
        for body, headers in ((LIST, session), (modern("tools/list"), told("tools/list"))):
            listed = bridge.post(body, headers)
            assert (b'"ok"' in listed.body, b'"evil"' in listed.body) == (True, False)


@pytest.mark.parametrize("name", [b"e\nvil", b"e\rvil", b"e\r\nvil"])
def test_a_name_with_a_bare_line_end_reaches_no_server_as_another_name_than_is_recorded(
    tmp_path: Path, name: bytes
) -> None:
    with bridged(tmp_path) as bridge:
        session = bridge.open()
        answer = bridge.post(call("NAME").encode().replace(b"NAME", name), session)
        assert (answer.status, code_of(answer.json)) == (400, -32700)
        assert bridge.post(call("ok").replace(",", "\r\n,"), session).status == 200
        assert [line.count(b"evil") for line in bridge.children.servers[0].lines] == [0, 0]
