"""Answers over HTTP that policy edits: JSON bodies and events, and what a server may not ask of the client."""

import json
from pathlib import Path
from threading import Event

import pytest

from proxy import vocabulary as v
from proxy.policy import Policy
from proxy.refusals import DENIED, NOT_READABLE
from proxy.spans import Span
from tests.proxy.deniedlines import code_of
from tests.proxy.httpupstream import WAIT, Request
from tests.proxy.httpwires import JSON_TYPE, Client, through
from tests.proxy.wires import call, policy_of

HIDING = policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}])
GUARDING = policy_of(client_requests={"sampling": "deny"})
LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
TOOLS = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"evil"}, {"name":"ok"}],"cacheScope":"public"}}'
SHOWN = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"ok"}],"cacheScope":"private"}}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
SAMPLING = b'{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}'
SESSION = (b"mcp-session-id", b"s")


def test_a_hidden_tool_is_gone_from_a_json_answer_whose_length_fits(tmp_path: Path) -> None:
    with through(tmp_path, HIDING, lambda request: request.answer(TOOLS, headers="x-a: 1\r\nx-a: 2")) as (
        proxy,
        upstream,
    ):
        answer = proxy.post(LIST, (b"accept-encoding", b"gzip"))
        assert (answer.status, answer.body, answer.values("x-a")) == (200, SHOWN, ["1", "2"])
        assert upstream.requests[0].values("accept-encoding") == ["identity"]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_hidden_tool_is_gone_from_an_event_and_all_else_of_the_stream_stays(tmp_path: Path, size: int) -> None:
    before = b": hi\n\nid: 1\ndata:\n\n"
    stream = before + b"id: 2\r\nevent: message\r\ndata:" + TOOLS + b"\r\nretry: 3\r\n\r\n" + b": bye\n\n"
    shown = before + b"id: 2\r\nevent: message\r\ndata: " + SHOWN + b"\r\nretry: 3\r\n\r\n" + b": bye\n\n"

    def answer(request: Request) -> None:
        request.stream()
        for at in range(0, len(stream), size):
            request.chunk(stream[at : at + size])
        request.end()

    with through(tmp_path, HIDING, answer) as (proxy, _):
        assert proxy.post(LIST, SESSION).body == shown


def test_what_is_held_for_an_edit_is_held_no_longer_than_its_own_event(tmp_path: Path) -> None:
    go = Event()

    def answer(request: Request) -> None:
        request.stream(b": one\n", b"data: {", b'"jsonrpc":"2.0","method":"n"}\n\n')
        assert go.wait(WAIT)
        request.chunk(b"data: " + TOOLS + b"\n\n")
        request.end()

    with through(tmp_path, HIDING, answer) as (proxy, _), Client(proxy.port) as client:
        client.send("POST", "/mcp", LIST.encode(), [JSON_TYPE, SESSION])
        client.head()
        assert client.until(b"\n\n") == b': one\ndata: {"jsonrpc":"2.0","method":"n"}\n\n'
        go.set()
        assert client.until(b"\n\n") == b"data: " + SHOWN + b"\n\n"


def ending(request: Span) -> tuple[object, ...]:
    return tuple(request.attributes.get(key) for key in (v.OUTCOME, v.ERROR_TYPE, v.REFUSED_BY_US))


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("kind", ["", "content-type: application/json\r\n", "content-type: text/event-stream\r\n"])
@pytest.mark.parametrize("policy", [HIDING, GUARDING], ids=["hiding", "guarding"])
def test_a_packed_answer_that_would_have_to_be_edited_is_replaced(
    tmp_path: Path, encoding: str, kind: str, policy: Policy
) -> None:
    with through(
        tmp_path, policy, lambda request: request.answer(b"x", headers=f"{kind}content-encoding: {encoding}")
    ) as (proxy, _):
        answer = proxy.post(LIST)
        assert (answer.status, code_of(answer.json)) == (502, NOT_READABLE)
        if kind.endswith("stream\r\n"):
            assert proxy.ask("GET", headers=[SESSION]).status == 502
        assert ending(proxy.only("request")) == ("protocol_error", str(NOT_READABLE), True)


def test_an_answer_without_a_type_is_looked_at_too(tmp_path: Path) -> None:
    with through(tmp_path, HIDING, lambda request: request.answer(TOOLS, headers="content-type: text/plain")) as (
        proxy,
        _,
    ):
        assert proxy.post(LIST).body == SHOWN


def test_an_answer_past_the_cap_is_replaced_where_it_might_be_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (
        "proxy.answers",
        "proxy.answerevents",
        "proxy.longlines",
        "proxy.frames",
        "proxy.readings",
        "proxy.record",
    ):
        monkeypatch.setattr(f"{module}.CAP", 2000)
    long = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[],"pad":"' + b"x" * 9000 + b'"}}'

    def answer(request: Request) -> None:
        if b'"id":2' in request.body:
            request.answer(long.replace(b'"id":1', b'"id":2'))
            return
        request.stream()
        for at in range(0, len(long), 1500):
            request.chunk((b"data: " if at == 0 else b"") + long[at : at + 1500])
        request.chunk(b"\n\ndata: " + SAMPLING + b"\n\n")
        request.end()

    with through(tmp_path, HIDING, answer) as (proxy, _):
        body = proxy.post(LIST, SESSION).body
        first, second, _ = body.split(b"\n\n")
        assert code_of(json.loads(first.removeprefix(b"data: "))) == NOT_READABLE
        assert second == b"data: " + SAMPLING
        assert code_of(proxy.post(LIST.replace(":1", ":2"), SESSION).json) == NOT_READABLE
        ends = [ending(one) for one in proxy.spans("request") if one.attributes[v.METHOD] == "tools/list"]
        assert ends == [("protocol_error", str(NOT_READABLE), True)] * 2


def test_a_denied_request_of_the_server_is_answered_by_a_post_and_never_reaches_the_client(tmp_path: Path) -> None:
    refused = Event()

    def answer(request: Request) -> None:
        message = json.loads(request.body)
        if message.get("method") == "tools/call":
            request.stream(b"id: 4\ndata: " + SAMPLING + b"\n\n")
            assert refused.wait(WAIT)
            request.chunk(b"data: " + RESULT + b"\n\n")
            request.end()
        else:
            request.answer(b"", "202 Accepted")
            refused.set()

    with through(tmp_path, GUARDING, answer) as (proxy, upstream):
        got = proxy.post(call("ok"), SESSION, (b"authorization", b"Bearer t"), (b"mcp-name", b"ok"))
        assert got.body == b"id: 4\n\ndata: " + RESULT + b"\n\n"
        ours = upstream.requests[1]
        assert code_of(json.loads(ours.body)) == DENIED
        assert json.loads(ours.body)["id"] == "s1"
        assert (ours.values("authorization"), ours.values("mcp-session-id")) == (["Bearer t"], ["s"])
        assert ours.values("mcp-name") == []
        found = {span.attributes[v.METHOD]: span.attributes[v.OUTCOME] for span in proxy.spans("request")}
    assert found == {"sampling/createMessage": "denied", "tools/call": "ok"}


def test_a_denied_request_on_the_listening_stream_is_refused_too(tmp_path: Path) -> None:
    refused = Event()

    def answer(request: Request) -> None:
        if request.method == "GET":
            request.stream(b": a\n\ndata: " + SAMPLING + b"\n\n")
            assert refused.wait(WAIT)
            request.end()
        else:
            request.answer(b"", "202 Accepted")
            refused.set()

    with through(tmp_path, GUARDING, answer) as (proxy, upstream):
        assert proxy.ask("GET", "/mcp", None, [SESSION]).body == b": a\n\n\n"
        assert code_of(json.loads(upstream.requests[1].body)) == DENIED
