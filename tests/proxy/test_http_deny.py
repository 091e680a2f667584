"""Nothing that policy denies reaches a server over HTTP, whatever it is dressed as."""

import gzip
import json
from base64 import b64encode
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.refusals import DENIED, NOT_READABLE
from proxy.spans import JSON
from tests.proxy.deniedlines import DENIED_ONES, UNREADABLE, code_of, ids_answered
from tests.proxy.httpwires import JSON_TYPE, Client, through
from tests.proxy.wires import EVIL, OBSERVING, call, policy_of

META = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
MODERN = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"evil","arguments":{{}},{META}}}}}'
OK = call("ok")


def test_no_denied_call_reaches_the_server_and_each_is_answered_under_its_id(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        for name, (line, ids) in DENIED_ONES.items():
            answer = proxy.post(line)
            assert answer.values("content-type") == ["application/json"], name
            if ids:
                assert (answer.status, ids_answered([answer.json]), code_of(answer.json)) == (200, ids, DENIED), name
            else:
                assert (answer.status, ids_answered([answer.json])) == (400, [None]), name
        assert proxy.post(OK).status == 200
        assert [request.body for request in upstream.requests] == [OK.encode()]
        decisions = proxy.spans("decision")
    assert [one.attributes[v.DECISION] for one in decisions] == ["deny"] * len(DENIED_ONES) + ["allow"]


def test_what_has_no_one_reading_never_reaches_the_server(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        for name, (line, ids) in UNREADABLE.items():
            answer = proxy.post(line)
            if b"1" * 5000 + b"," in line:  # an id longer than the integers of this test's reader
                assert f'"id":{"1" * 5000},'.encode() in answer.body
                continue
            got = answer.json
            replies: list[JSON] = [*got] if isinstance(got, list) else [got]
            assert (answer.status, ids_answered(replies)) == (400, ids or [None]), name
            assert {code_of(reply) for reply in replies} == {NOT_READABLE}, name
        assert upstream.requests == []
        assert len(proxy.spans("decision")) == len(UNREADABLE)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])
def test_a_body_in_another_encoding_is_refused_and_recorded_as_the_call_that_it_is(
    tmp_path: Path, encoding: str
) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        assert proxy.post(call().encode(encoding)).status == 400
        assert upstream.requests == []
        assert proxy.only("decision").attributes[v.METHOD] == "tools/call"


HEADERS: dict[str, list[tuple[bytes, bytes]]] = {
    "another name": [(b"mcp-name", b"ok")],
    "the name twice": [(b"mcp-name", b"evil"), (b"Mcp-Name", b"fine")],
    "the same name twice": [(b"mcp-name", b"fine"), (b"mcp-name", b"fine")],
    "another name in base64": [(b"mcp-name", b"=?base64?" + b64encode(b"evil") + b"?=")],
    "broken base64": [(b"mcp-name", b"=?base64?f?=")],
    "an underscore": [(b"mcp_name", b"evil")],
    "no utf-8": [(b"mcp-name", b"\xff")],
    "another method": [(b"mcp-method", b"tools/list")],
    "the method twice": [(b"mcp-method", b"tools/call"), (b"mcp-method", b"ping")],
    "another version": [(b"mcp-protocol-version", b"2025-11-25")],
    "two versions": [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-protocol-version", b"2025-11-25")],
    "a parameter of no argument": [(b"mcp-param-region", b"eu")],
    "a parameter twice": [(b"mcp-param-region", b"us"), (b"Mcp-Param-Region", b"us")],
    "a parameter with an underscore": [(b"mcp_param_region", b"eu")],
    "a parameter in broken base64": [(b"mcp-param-region", b"=?base64?f?=")],
    "a charset": [(b"content-type", b"application/json; charset=utf-7")],
}
FINE = MODERN.replace("evil", "fine").replace('"arguments":{}', '"arguments":{"a":["us",{"b":7.0,"c":true}]}')


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_says_something_else_than_the_body_is_refused(tmp_path: Path, name: str) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        answer = proxy.ask("POST", "/mcp", FINE.encode(), HEADERS[name])
        assert (answer.status, code_of(answer.json), ids_answered([answer.json])) == (400, NOT_READABLE, [1])
        assert upstream.requests == []
        assert proxy.only("decision").attributes[v.DECISION_RULE] == "one reading"


def test_headers_that_say_what_the_body_says_pass(tmp_path: Path) -> None:
    given = [(b"mcp-name", b"=?base64?" + b64encode(b"fine") + b"?="), (b"mcp-method", b"tools/call")]
    given.append((b"mcp-protocol-version", b"2026-07-28"))
    given += [(b"mcp-param-%d" % at, one) for at, one in enumerate([b"us", b"7", b"true", b"=?base64?dXM=?="])]
    with through(tmp_path, EVIL) as (proxy, upstream):
        assert proxy.post(FINE, *given).status == 200
        (request,) = upstream.requests
        assert request.values("mcp-name") == ["=?base64?ZmluZQ==?="]


def test_a_packed_body_is_refused_with_policy_in_force_and_its_call_is_in_the_record(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        answer = proxy.post(gzip.compress(call().encode()), (b"content-encoding", b"gzip"))
        assert (answer.status, answer.values("accept-encoding")) == (415, ["identity"])
        assert proxy.post(b"\x1b?", (b"content-encoding", b"br")).status == 415
        assert upstream.requests == []
        first, _ = proxy.spans("decision")
        assert first.attributes[v.METHOD] == "tools/call"


def test_a_packed_body_passes_without_policy_and_is_recorded_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(OK.encode())
    with through(tmp_path, handler=lambda request: request.answer(b'{"jsonrpc":"2.0","id":1,"result":{}}')) as (
        proxy,
        upstream,
    ):
        assert proxy.post(packed, (b"content-encoding", b"gzip")).status == 200
        assert upstream.requests[0].body == packed
        assert proxy.only("request").attributes[v.TOOL_NAME] == "ok"


@pytest.mark.parametrize("size", [1, 3, 40])
def test_a_body_in_chunks_that_cut_its_name_is_judged_whole(tmp_path: Path, size: int) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream), Client(proxy.port) as client:
        for body in (call().encode(), OK.encode()):
            client.send("POST", "/mcp", None, [JSON_TYPE, (b"transfer-encoding", b"chunked")])
            for at in range(0, len(body), size):
                part = body[at : at + size]
                client.socket.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            client.socket.sendall(b"0\r\n\r\n")
            assert client.rest(client.head()).status == 200
        (request,) = upstream.requests
        assert (request.body, request.values("content-length")) == (OK.encode(), [str(len(OK))])
        assert request.values("transfer-encoding") == []


def test_an_array_is_judged_element_by_element_in_the_protocol_that_has_them(tmp_path: Path) -> None:
    hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}'
    answer = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26"}}'
    session = (b"mcp-session-id", b"s1")

    with through(tmp_path, EVIL) as (proxy, upstream):
        upstream.handler = lambda request: request.answer(answer, headers="mcp-session-id: s1")
        assert proxy.post(hello).values("mcp-session-id") == ["s1"]
        upstream.handler = lambda request: request.answer(b"[]")
        refused = proxy.post(f"[{call('ok', id_text='5')},{call(id_text='6')}]", session)
        assert (refused.status, ids_answered([refused.json])) == (200, [5, 6])
        assert len(upstream.requests) == 1
        assert proxy.post(f"[{call('ok', id_text='5')}]", session).status == 200
        assert proxy.post(f"[{call('ok', id_text='5')}]", (b"mcp-session-id", b"other")).status == 400
        assert proxy.post(f"[{call('ok', id_text='5')}]").status == 400
        assert len(upstream.requests) == 2


def test_a_refusal_in_the_new_era_is_complete_and_an_error_is_400(tmp_path: Path) -> None:
    policy = policy_of(rules=[{"deny": "mcp/x/evil"}, {"deny": "mcp/x/worse", "as": "error"}])
    with through(tmp_path, policy) as (proxy, upstream):
        result = proxy.post(MODERN)
        assert result.status == 200
        assert json.loads(result.body)["result"]["resultType"] == "complete"
        error = proxy.post(MODERN.replace("evil", "worse"))
        assert (error.status, code_of(error.json)) == (400, DENIED)
        old = proxy.post(call("worse"))
        assert (old.status, code_of(old.json)) == (200, DENIED)
        assert upstream.requests == []


def test_a_body_past_the_cap_is_413_with_policy_and_answered_under_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("proxy.http", "proxy.longlines", "proxy.frames", "proxy.readings", "proxy.record"):
        monkeypatch.setattr(f"{module}.CAP", 2000)
    long = call(arguments=f'{{"a":"{"x" * 600_000}"}}', id_text='"end"')
    late = long.replace('"id":"end",', "")[:-1] + ',"id":"end"}'
    with through(tmp_path, EVIL) as (proxy, upstream):
        for body in (long, late, long.replace("evil", "ok")):
            answer = proxy.post(body)
            assert (answer.status, ids_answered([answer.json]), code_of(answer.json)) == (413, ["end"], NOT_READABLE)
        assert upstream.requests == []
        assert all(one.attributes[v.payload_truncated("request")] for one in proxy.spans("decision"))


def test_a_body_past_the_cap_flows_without_policy_and_is_recorded_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("proxy.http", "proxy.longlines", "proxy.frames", "proxy.readings", "proxy.record"):
        monkeypatch.setattr(f"{module}.CAP", 2000)
    long = call(arguments=f'{{"a":"{"x" * 600_000}"}}').encode()
    with through(tmp_path) as (proxy, upstream):
        assert proxy.post(long).status == 200
        assert upstream.requests[0].body == long
        request = proxy.only("request")
        assert request.attributes[v.payload_truncated("arguments")] is True
        assert request.attributes[v.OUTCOME] == "ok"


def test_what_is_no_message_of_mcp_passes_with_policy_in_force_and_is_not_recorded(tmp_path: Path) -> None:
    form = b"grant_type=authorization_code&code=abc&name=tools%2Fcall"
    registration = b'{"client_name":"c","redirect_uris":["http://localhost/cb"],"client_secret":"s"}'
    with through(tmp_path, EVIL) as (proxy, upstream):
        proxy.ask("POST", "/token", form, [(b"content-type", b"application/x-www-form-urlencoded")])
        proxy.post(registration, target="/register")
        proxy.ask("POST", "/mcp", b"")
        assert [request.body for request in upstream.requests] == [form, registration, b""]
        assert proxy.spans() == []


def test_a_call_that_says_that_it_is_a_form_is_a_call(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        for body in (call().encode(), b"\xef\xbb\xbf" + call().encode()):
            proxy.ask("POST", "/mcp", body, [(b"content-type", b"application/x-www-form-urlencoded")])
            proxy.ask("PUT", "/mcp", body, [])
            proxy.ask("GET", "/mcp", body, [])
        assert upstream.requests == []


def test_in_observe_mode_all_of_them_pass_and_are_recorded(tmp_path: Path) -> None:
    bodies = [line.encode("utf-8") for line, _ in DENIED_ONES.values()] + [line for line, _ in UNREADABLE.values()]
    with through(tmp_path, OBSERVING, lambda request: request.answer(b"", "202 Accepted")) as (proxy, upstream):
        for body in bodies:
            proxy.post(body, (b"mcp-name", b"other"))
        assert [request.body for request in upstream.requests] == bodies
        decisions = proxy.spans("decision")
    assert {one.attributes[v.DECISION_ENFORCED] for one in decisions} == {False}
    assert len(decisions) >= len(bodies)
