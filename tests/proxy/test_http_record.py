"""Bodies and ids over HTTP: they pass as they are, and the record can be read."""

import gzip
import json
from pathlib import Path
from threading import Event

import pytest

from proxy import vocabulary as v
from proxy.longlines import BRIEF
from tests.proxy.httpmessages import MODERN, OK, RESULT, data
from tests.proxy.httpupstream import WAIT, Request
from tests.proxy.httpwires import JSON_TYPE, Client, through
from tests.proxy.wires import ALLOWING, call


def test_a_packed_answer_passes_as_it_is_and_is_recorded_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(RESULT)
    events = gzip.compress(data(RESULT))
    with through(tmp_path) as (proxy, upstream):
        upstream.handler = lambda request: request.answer(
            packed, headers="content-encoding: gzip\r\ncontent-type: application/json"
        )
        assert proxy.post(OK).body == packed
        upstream.handler = lambda request: request.answer(
            events, headers="content-encoding: gzip\r\ncontent-type: text/event-stream"
        )
        assert proxy.post(OK).body == events
        for one in proxy.spans("request"):
            assert (one.attributes[v.OUTCOME], one.attributes[v.TOOL_RESULT]) == ("ok", '{"content":[]}')


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_in_an_encoding_that_is_not_read_passes_and_the_record_says_so(
    tmp_path: Path, encoding: str, kind: str
) -> None:
    headers = f"content-encoding: {encoding}\r\ncontent-type: {kind}"
    with through(tmp_path, ALLOWING, lambda request: request.answer(b"\x1b", headers=headers)) as (proxy, upstream):
        assert proxy.post(OK, (b"accept-encoding", b"br, zstd")).body == b"\x1b"
        assert upstream.requests[0].values("accept-encoding") == ["br, zstd"]
        listening = kind == "text/event-stream"
        if listening:
            assert proxy.ask("GET", headers=[(b"mcp-session-id", b"s")]).body == b"\x1b"
        whys = [str(one.attributes[v.MALFORMED]) for one in proxy.spans("malformed")]
        assert whys == [f"the answer is encoded as {encoding}, which is not read"] * (1 + listening)
        assert proxy.only("request").attributes[v.OUTCOME] == "unanswered"


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_of_twenty_megabytes_passes_and_is_recorded_cut(tmp_path: Path, stream: bool) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"pad":"' + b"x" * 20_000_000 + b'","isError":true}}'

    def answer(request: Request) -> None:
        if not stream:
            request.answer(body)
            return
        request.stream()
        event = data(body)
        for at in range(0, len(event), 1_000_000):
            request.chunk(event[at : at + 1_000_000])
        request.end()

    with through(tmp_path, ALLOWING, answer) as (proxy, _):
        got = proxy.post(OK).body
        assert got == (data(body) if stream else body)
        request = proxy.only("request")
        assert request.attributes[v.OUTCOME] == "tool_error"
        assert request.attributes[v.payload_truncated("result")] is True
        assert request.attributes[v.payload_bytes("result")] == BRIEF


def test_ids_1_and_its_text_are_open_at_once_and_4_point_0_is_answered_as_4(tmp_path: Path) -> None:
    first = Event()

    def answer(request: Request) -> None:
        asked = json.loads(request.body)["id"]
        if asked == 1:
            assert first.wait(WAIT)
        told = 4 if asked == 4.0 else asked
        request.answer(
            json.dumps({"jsonrpc": "2.0", "id": told, "result": {"content": [], "for": str(asked)}}).encode()
        )
        if asked == "1":
            first.set()

    session = (b"mcp-session-id", b"s")
    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as one:
        one.send("POST", "/mcp", call(id_text="1").encode(), [JSON_TYPE, session])
        assert json.loads(proxy.post(call(id_text='"1"'), session).body)["id"] == "1"
        assert json.loads(one.rest(one.head()).body)["id"] == 1
        assert json.loads(proxy.post(call(id_text="4.0"), session).body)["id"] == 4
        found = {one.attributes[v.ID_TEXT]: one.attributes for one in proxy.spans("request")}
    assert set(found) == {"1", '"1"', "4.0"}
    assert all(one[v.OUTCOME] == "ok" and v.ID_REUSED not in one for one in found.values())


def test_clients_without_a_session_may_use_the_same_id_at_once(tmp_path: Path) -> None:
    second = Event()

    def answer(request: Request) -> None:
        slow = b"slow" in request.body
        assert not slow or second.wait(WAIT)
        request.answer(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"slow":%s}}' % (b"true" if slow else b"false"))
        second.set()

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as one:
        one.send("POST", "/mcp", MODERN.replace(b'"ok"', b'"slow"'), [JSON_TYPE])
        proxy.post(MODERN)
        one.rest(one.head())
        found = {one.attributes[v.TOOL_NAME]: one.attributes for one in proxy.spans("request")}
        (closed,) = proxy.spans("connection_closed")
    assert "true" in str(found["slow"][v.TOOL_RESULT])
    assert "false" in str(found["ok"][v.TOOL_RESULT])
    assert not any(v.ID_REUSED in one for one in found.values())
    assert closed.attributes[v.PROTOCOL_VERSION] == "2026-07-28"
