"""Ids that clients take for each other: an answer ends the request that its client takes it for."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.convert import convert
from proxy import vocabulary as v
from proxy.ids import IdKey, answered_key
from proxy.refusals import NOT_READABLE
from tests.proxy.deniedlines import code_of
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import through
from tests.proxy.wires import Wire, call, policy_of

HIDING = policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}])
LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def tools(id_text: str, left: str = '{"name":"evil"},') -> str:
    return f'{{"jsonrpc":"2.0","id":{id_text},"result":{{"tools":[{left}{{"name":"ok"}}]}}}}'


OTHER_IDS = ['"1"', '" 1 "', '"01"', '"+1"', '"1.0"', '"1e0"', '"0x1"', '"\\u0031"', '"\\ufeff1"', '"\\u0661"']


@pytest.mark.parametrize("id_text", OTHER_IDS)
def test_an_answer_whose_id_clients_take_for_the_requests_ends_it_and_is_edited(tmp_path: Path, id_text: str) -> None:
    wire = Wire(tmp_path, HIDING)
    wire.client(LIST, call("ok", id_text="2"))
    wire.server(tools(id_text))
    wire.server('{"jsonrpc":"2.0","id":"2","result":{"content":[]}}')
    assert wire.to_client.decode().splitlines()[0] == tools(id_text, "")
    wire.end()
    listed, called = wire.spans("request")
    assert (listed.attributes[v.OUTCOME], listed.attributes[v.ANSWER_ID]) == ("ok", id_text)
    assert (called.attributes[v.OUTCOME], called.attributes[v.ANSWER_ID]) == ("ok", '"2"')
    assert wire.spans("unmatched") == []
    assert [one.outcome for one in convert(wire.spans()).tool_calls] == ["ok"]


@pytest.mark.parametrize(("asked", "answered"), [('"1"', "1"), ('"01"', "1"), ('"1"', '" 1"')])
def test_python_takes_a_number_for_a_text_too(tmp_path: Path, asked: str, answered: str) -> None:
    wire = Wire(tmp_path)
    wire.client(call("ok", id_text=asked))
    wire.server(f'{{"jsonrpc":"2.0","id":{answered},"result":{{"content":[]}}}}')
    assert wire.only("request").attributes[v.ANSWER_ID] == answered


def test_the_very_same_id_goes_first(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    wire.client(call("number", id_text="1"), call("text", id_text='"1"'))
    for one in ('"1"', "1"):
        wire.server(f'{{"jsonrpc":"2.0","id":{one},"result":{{"content":[]}}}}')
    found = wire.spans("request")
    assert [span.attributes[v.TOOL_NAME] for span in found] == ["text", "number"]
    assert not any(v.ANSWER_ID in span.attributes for span in found)


@pytest.mark.parametrize("id_text", ["7", '"x"'])
def test_a_list_that_nobody_asked_for_here_has_no_hidden_tools_either(tmp_path: Path, id_text: str) -> None:
    wire = Wire(tmp_path, HIDING)
    wire.server(tools(id_text))
    assert wire.to_client.decode() == tools(id_text, "") + "\n"
    wire.server(tools(id_text).replace('"name":"evil"', '"name":"evil","name":"evil"'))
    assert code_of(wire.replies[1]) == NOT_READABLE


def test_a_list_in_the_stream_of_another_request_or_repeated_has_no_hidden_tools(tmp_path: Path) -> None:
    def lists(request: Request) -> None:
        event = b"id: 1\ndata: " + tools("1").encode() + b"\n\n"
        request.stream(event)
        request.end()

    session, last = (b"mcp-session-id", b"s"), (b"last-event-id", b"0")
    with through(tmp_path, HIDING, lists) as (proxy, _):
        assert b"evil" not in proxy.post(call("ok", id_text="2")).body
        assert b"evil" not in proxy.post(LIST, session).body
        assert b"evil" not in proxy.ask("GET", headers=[session, last]).body


KEYS: st.SearchStrategy[IdKey] = st.one_of(
    st.tuples(st.just("n"), st.integers(-2, 12)),
    st.tuples(st.just("s"), st.text("0123456789 +-_.eExa\u0661\ufeff", max_size=4)),
)


@given(KEYS, st.sets(KEYS, max_size=4))
def test_whatever_pythons_int_takes_for_an_open_id_is_taken_for_it(key: IdKey, waiting: set[IdKey]) -> None:
    def as_int(one: IdKey) -> object:
        with suppress(ValueError):
            return int(one[1])
        return one

    found = answered_key(key, waiting)
    assert found is None or found in waiting
    if key in waiting:
        assert found == key
    elif as_int(key) in {as_int(one) for one in waiting}:
        assert found is not None
