import json
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.refusals import DENIED, NOT_READABLE
from proxy.spans import JSON
from tests.proxy.deniedlines import code_of
from tests.proxy.wires import EVIL, OBSERVING, Wire, call

OK = call("ok", id_text='"a"')
NOTE = '{"jsonrpc":"2.0","method":"notifications/x"}'
ANSWER = '{"jsonrpc":"2.0","id":9,"result":{}}'


def array(*texts: str) -> str:
    return "[" + " , ".join(texts) + "]"


def answers(connection: Wire) -> dict[JSON, JSON]:
    (reply,) = connection.replies
    assert isinstance(reply, list)
    return {one["id"]: code_of(one) for one in reply if isinstance(one, dict) and isinstance(one["id"], str | int)}


def test_an_array_passes_in_the_one_protocol_that_has_them(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.negotiate("2025-03-26")
    line = array(OK, NOTE, ANSWER, call("ok"), '{"jsonrpc":"2.0","id":2,"method":"ping"}')
    connection.client(line)
    assert connection.to_server == line.encode() + b"\n"
    assert connection.to_client == b""
    assert [span.attributes[v.REQUEST] for span in connection.spans("decision")] == [OK, call("ok")]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_an_array_is_refused_in_any_other(tmp_path: Path, version: str) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.negotiate(version)
    connection.client(array(OK, NOTE, call("ok")))
    assert connection.to_server == b""
    assert answers(connection) == {"a": NOT_READABLE, 1: NOT_READABLE}


@pytest.mark.parametrize("position", [0, 1, 2, 3, 4])
def test_one_refusal_refuses_an_array_whole(tmp_path: Path, position: int) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.negotiate("2025-03-26")
    texts = [OK, NOTE, ANSWER, '{"jsonrpc":"2.0","id":2,"method":"ping"}']
    texts.insert(position, call("evil"))
    connection.client(array(*texts))
    assert connection.to_server == b""
    assert answers(connection) == {"a": DENIED, 1: DENIED, 2: DENIED}
    recorded = {span.attributes[v.REQUEST] for span in connection.spans() if v.REQUEST in span.attributes}
    assert set(texts) <= recorded
    assert {span.attributes[v.OUTCOME] for span in connection.spans("request")[1:]} == {"denied"}


def test_an_array_of_denied_notifications_has_no_answer(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.negotiate("2025-03-26")
    connection.client(array(call(id_text=None), call(id_text="null")))
    assert (connection.to_server, connection.to_client) == (b"", b"")
    assert len(connection.spans("decision")) == 2


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "[1]",
        array("[" + OK + "]"),
        array(OK, "null"),
        array(OK, '{"method":"tools/call","method":"ping","id":3}'),
        array(OK, '{"Method":"tools/call","id":3,"params":{"name":"evil"}}'),
        array(OK) + array(OK),
        array(OK)[:-1],
        array(OK)[:-1] + ",]",
    ],
)
def test_an_array_that_cannot_be_read_is_refused_in_that_protocol_too(tmp_path: Path, line: str) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.negotiate("2025-03-26")
    connection.client(line)
    assert connection.to_server == b""
    assert connection.only("decision").attributes[v.DECISION] == "deny"


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
def test_observed_only_an_array_with_a_denied_call_passes(tmp_path: Path, version: str) -> None:
    connection = Wire(tmp_path, OBSERVING)
    connection.negotiate(version)
    line = array(OK, call("evil"))
    connection.client(line)
    assert connection.to_server == line.encode() + b"\n"
    assert not any(span.attributes[v.DECISION_ENFORCED] for span in connection.spans("decision"))


def test_an_array_of_answers_ends_each_exchange(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.negotiate("2025-03-26")
    connection.client(array(OK, call("ok")))
    reply = array('{"jsonrpc":"2.0","id":1,"result":{"isError":true}}', NOTE, '{"jsonrpc":"2.0","id":"a","result":{}}')
    connection.server(reply)
    assert connection.to_client == reply.encode() + b"\n"
    ended = {span.attributes[v.ID_TEXT]: span.attributes[v.OUTCOME] for span in connection.spans("request")[1:]}
    assert ended == {"1": "tool_error", '"a"': "ok"}
    assert json.loads(reply)
