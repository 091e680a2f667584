"""The rounds of one logical call (MCP 2026-07-28): linked, one call in the trace, and refused where policy says so."""

import json
from pathlib import Path

import pytest

from harness.convert import convert
from proxy import vocabulary as v
from proxy.spans import JSON
from tests.proxy.wires import Wire, policy_of

META: dict[str, JSON] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
DENIED = policy_of(client_requests={"sampling": "deny"})


def ask(number: int, name: str = "ask", /, **more: JSON) -> str:
    params: dict[str, JSON] = {"name": name, "arguments": {"q": 1}, "_meta": META, **more}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def interim(number: int, state: str | None = None, method: str = "sampling/createMessage") -> str:
    result: dict[str, JSON] = {"resultType": "input_required", "inputRequests": {"k": {"method": method, "params": {}}}}
    if state is not None:
        result["requestState"] = state
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result})


def final(number: int, *, is_error: bool = False) -> str:
    result: JSON = {"resultType": "complete", "content": [], "isError": is_error}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result})


@pytest.mark.parametrize("state", ["s1", None], ids=["by its state", "by what it calls"])
def test_the_rounds_of_a_call_are_linked_and_are_one_call_in_the_trace(tmp_path: Path, state: str | None) -> None:
    wire = Wire(tmp_path)
    wire.client(ask(1))
    wire.server(interim(1, state))
    more: dict[str, JSON] = {"inputResponses": {"k": {}}}
    if state is not None:
        more["requestState"] = state
    wire.client(ask(2, **more))
    wire.server(interim(2, None if state is None else "s2"))
    wire.client(ask(3, **(more if state is None else {**more, "requestState": "s2"})))
    wire.server(final(3))
    wire.end()
    first, second, third = wire.spans("request")
    assert [span.attributes.get(v.ROUND) for span in (first, second, third)] == [None, 1, 2]
    assert {span.attributes[v.ROUND_OF] for span in (second, third)} == {first.span_id}
    assert (second.trace_id, second.span_id) in third.links
    (call,) = convert(wire.spans()).tool_calls
    assert (call.outcome, call.request_id, call.rounds) == ("ok", "1", ("2", "3"))
    assert call.result == json.loads(final(3))["result"]


def test_calls_that_wait_side_by_side_are_not_mixed_up(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    for number, name in ((1, "ask"), (2, "other")):
        wire.client(ask(number, name))
        wire.server(interim(number, f"state of {name}"))
    wire.client(ask(3, "other", requestState="state of other"), ask(4, "ask", requestState="state of ask"))
    wire.server(final(4), final(3, is_error=True))
    wire.end()
    calls = {call.mcp_tool_name: (call.outcome, call.rounds) for call in convert(wire.spans()).tool_calls}
    assert calls == {"ask": ("ok", ("4",)), "other": ("tool_error", ("3",))}


def test_a_call_whose_client_gives_up_on_it_has_no_answer(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    wire.client(ask(1))
    wire.server(interim(1))
    wire.end()
    trace = convert(wire.spans())
    (call,) = trace.tool_calls
    assert (call.outcome, call.is_error) == ("unanswered", None)
    assert "mcp_tool_result" not in [event.type for event in trace.events]


def test_an_equal_call_that_brings_no_input_is_a_call_of_its_own(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    wire.client(ask(1))
    wire.server(interim(1))
    wire.client(ask(2))
    wire.server(final(2))
    wire.end()
    assert [call.outcome for call in convert(wire.spans()).tool_calls] == ["unanswered", "ok"]


def test_what_an_interim_result_asks_is_decided_on_and_recorded(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    wire.client(ask(1))
    wire.server(interim(1))
    wire.end()
    inner = wire.spans("decision")[1]
    (request,) = wire.spans("request")
    assert inner.parent_id == request.span_id
    assert (inner.attributes[v.METHOD], inner.attributes[v.DECISION]) == ("sampling/createMessage", "allow")
    assert inner.attributes[v.REQUEST] == '{"method": "sampling/createMessage", "params": {}}'
    events = [event.fields for event in convert(wire.spans()).events if event.type == "mcp_client_request"]
    assert [(event["method"], event["outcome"]) for event in events] == [("sampling/createMessage", None)]


EVASIONS = {
    "plain": interim(1),
    "escaped": interim(1).replace("inputRequests", "input\\u0052equests"),
    "in another case": interim(1).replace("inputRequests", "INPUTrequests"),
    "method in another case": interim(1).replace('"method"', '"Method"'),
    "repeated": interim(1, method="elicitation/create").replace(
        '"inputRequests"', '"inputRequests": {"k": {"method": "sampling/createMessage"}}, "inputRequests"'
    ),
    "resultType missing": interim(1).replace('"resultType": "input_required", ', ""),
    "among others": interim(1).replace('{"k":', '{"a": {"method": "roots/list"}, "k":'),
    "with NaN": interim(1).replace('"params": {}', '"params": NaN'),
    "in an array": f"[{interim(1)}]",
}


@pytest.mark.parametrize("answer", EVASIONS.values(), ids=EVASIONS)
def test_an_interim_result_that_asks_what_is_denied_never_reaches_the_client(tmp_path: Path, answer: str) -> None:
    wire = Wire(tmp_path, DENIED)
    wire.client(ask(1))
    wire.server(answer)
    wire.end()
    (reply,) = wire.replies
    assert isinstance(reply, dict)
    result = reply["result"]
    assert isinstance(result, dict)
    assert (reply["id"], result["isError"], result["resultType"]) == (1, True, "complete")
    assert b"sampling/createMessage" not in bytes(wire.to_client).replace(b"client, sampling/createMessage", b"")
    assert wire.to_server == ask(1).encode() + b"\n"
    trace = convert(wire.spans())
    (call,) = trace.tool_calls
    assert call.outcome == "tool_error"
    (asked,) = [event.fields for event in trace.events if event.type == "mcp_client_request"]
    assert asked["outcome"] == "denied"


def test_a_denied_kind_of_request_leaves_the_others_alone(tmp_path: Path) -> None:
    wire = Wire(tmp_path, DENIED)
    wire.client(ask(1))
    answer = interim(1, "s", "elicitation/create")
    wire.server(answer)
    wire.end()
    assert wire.to_client == answer.encode() + b"\n"


def test_a_prompt_that_asks_what_is_denied_is_answered_by_an_error(tmp_path: Path) -> None:
    wire = Wire(tmp_path, DENIED)
    wire.client(ask(1).replace("tools/call", "prompts/get"))
    wire.server(interim(1))
    wire.end()
    (reply,) = wire.replies
    assert isinstance(reply, dict)
    problem = reply["error"]
    assert isinstance(problem, dict)
    assert problem["code"] == 10001


def test_observing_lets_an_interim_result_through_and_says_what_would_have_been(tmp_path: Path) -> None:
    wire = Wire(tmp_path, policy_of(mode="observe", client_requests={"sampling": "deny"}))
    wire.client(ask(1))
    wire.server(interim(1))
    wire.end()
    assert wire.to_client == interim(1).encode() + b"\n"
    inner = wire.spans("decision")[1]
    assert (inner.attributes[v.DECISION], inner.attributes[v.DECISION_ENFORCED]) == ("deny", False)
