from dataclasses import replace

import pytest

from harness.convert import convert
from harness.facts import ConvertError
from proxy import vocabulary as v
from proxy.spans import Attribute
from tests.harness.traced import events
from tests.harness.wire import Wire, foreign, payload


def test_a_plain_call_has_every_field() -> None:
    trace = convert(Wire(agent="worker").opened().initialize().call("get_customer_profile").closed().spans)
    (call,) = trace.tool_calls
    assert call.name == "mcp/crm/get_customer_profile"
    assert (call.mcp_server_id, call.mcp_tool_name, call.mcp_method) == ("crm", "get_customer_profile", "tools/call")
    assert (call.trust, call.mcp_transport, call.agent, call.connection) == ("internal", "stdio", "worker", "c1")
    assert call.arguments == {"customer_id": "CUST-004"}
    assert (call.arguments_text, call.arguments_truncated) == (None, False)
    assert call.result == {"content": [{"type": "text", "text": "x"}]}
    assert (call.outcome, call.is_error, call.decision, call.decision_enforced) == ("ok", False, "allow", True)
    assert call.started_at == "2023-11-14T22:13:20.000005000Z"
    assert call.duration_ms == 0.001
    assert call.request_id == "4"
    assert call.result_seq is not None
    assert call.seq < call.result_seq
    (result,) = events(trace, "mcp_tool_result")
    assert result.seq == call.result_seq
    assert trace.gaps == ()


@pytest.mark.parametrize("outcome", ["tool_error", "protocol_error"])
def test_an_error_answer_is_told_in_call_and_event(outcome: str) -> None:
    trace = convert(Wire().initialize().call("x", outcome=outcome).closed().spans)
    assert (trace.tool_calls[0].outcome, trace.tool_calls[0].is_error) == (outcome, True)
    assert events(trace, "mcp_tool_result")[0].fields["is_error"] is True


def test_a_protocol_error_keeps_the_error_object() -> None:
    wire = Wire().initialize()
    attributes: dict[str, Attribute] = {
        v.TOOL_NAME: "x",
        v.TOOL_CANONICAL: "mcp/crm/x",
        **payload(v.RESULT, "result", '{"code":-32602,"message":"no"}'),
    }
    wire.request("tools/call", attributes, "protocol_error", decision="allow")
    assert convert(wire.spans).tool_calls[0].result == {"code": -32602, "message": "no"}


def test_a_denied_call_has_no_result_event_and_says_why() -> None:
    trace = convert(Wire().initialize().call("evil", outcome="denied", decision="deny", ours=True).closed().spans)
    (call,) = trace.tool_calls
    assert (call.outcome, call.decision, call.decision_reason) == ("denied", "deny", "because deny")
    assert events(trace, "mcp_tool_result") == []
    assert events(trace, "mcp_policy_decision")[0].fields["enforced"] is True


def test_a_call_that_would_have_been_denied_has_the_servers_outcome() -> None:
    trace = convert(Wire().initialize().call("evil", decision="deny", enforced=False).closed().spans)
    (call,) = trace.tool_calls
    assert (call.outcome, call.decision, call.decision_enforced) == ("ok", "deny", False)
    assert len(events(trace, "mcp_tool_result")) == 1


def test_a_decision_alone_is_an_unanswered_call_with_its_arguments() -> None:
    trace = convert(Wire().opened().initialize().call("x", '{"n": 1E2}', written=False).spans)
    (call,) = trace.tool_calls
    assert (call.name, call.mcp_tool_name, call.outcome, call.is_error) == ("mcp/crm/x", "x", "unanswered", None)
    assert (call.arguments, call.arguments_text) == ({"n": 100.0}, '{"n": 1E2}')
    assert call.result_seq is None
    assert [event.fields["reason"] for event in events(trace, "mcp_connection_closed")] == ["lost"]
    assert trace.gaps == ("a connection to crm was lost: its end was never written",)


def test_a_refusal_alone_is_a_denied_call() -> None:
    trace = convert(Wire().call("evil", outcome="denied", decision="deny", written=False).closed().spans)
    assert [(call.name, call.outcome) for call in trace.tool_calls] == [("mcp/crm/evil", "denied")]


def test_a_call_without_id_is_known_by_its_decision_and_one_without_name_too() -> None:
    wire = Wire()
    wire.unread('{"method":"tools/call","params":{}}', "allow", enforced=False, method="tools/call")
    (call,) = convert(wire.spans).tool_calls
    assert (call.name, call.outcome) == (None, "unanswered")


def test_an_unanswered_exchange_stays_unanswered() -> None:
    for outcome in ("unanswered", "cancelled"):
        trace = convert(Wire().initialize().call("x", outcome=outcome, answered=False).closed("server_ended").spans)
        (call,) = trace.tool_calls
        assert (call.outcome, call.is_error, call.duration_ms, call.result_seq) == (outcome, None, None, None)


REFUSED = {
    "name twice": ('{"id":1,"method":"tools/call","params":{"name":"evil","name":"ok"}}', ["evil", "ok"]),
    "folded name": ('{"id":1,"method":"tools/call","params":{"name":"ok","Name":"evil"}}', ["ok", "evil"]),
    "folded method": ('{"id":1,"method":"ping","Method":"tools/call","params":{"name":"evil"}}', ["evil"]),
    "method twice": ('{"id":1,"method":"tools/call","method":"ping","params":{"name":"evil"}}', ["evil"]),
    "array": (
        '[{"id":1,"method":"tools/call","params":{"name":"a"}},{"id":2,"method":"tools/call","params":{"name":"b"}}]',
        ["a", "b"],
    ),
    "other case": ('{"id":1,"method":"Tools/Call","params":{"name":"evil"}}', ["evil"]),
    "slash in the name": ('{"id":1,"id":1,"method":"tools/call","params":{"name":"a/b"}}', ["a%2Fb"]),
    "not a call": ('{"id":1,"id":1,"method":"ping"}', []),
    "no name": ('{"id":1,"method":"tools/call","method":"tools/call","params":{}}', []),
    "no json": ("nonsense", []),
}


@pytest.mark.parametrize(("frame", "names"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_frame_is_a_denied_call_for_each_name_that_a_reading_gives(frame: str, names: list[str]) -> None:
    trace = convert(Wire().unread(frame, method="tools/call").spans)
    assert sorted(call.name or "" for call in trace.tool_calls) == sorted(f"mcp/crm/{name}" for name in names)
    assert {call.outcome for call in trace.tool_calls} <= {"denied"}
    (decision,) = events(trace, "mcp_policy_decision")
    assert decision.fields["malformed"] == "a key is repeated"


def test_an_odd_frame_that_went_on_is_attempts_that_are_no_success() -> None:
    frame = '{"id":1,"method":"tools/call","params":{"name":"evil","name":"ok","arguments":{"a":NaN}}}'
    wire = Wire().call("ok", '{"a":NaN}', frame=frame, malformed="a key is repeated", decision="allow")
    calls = convert(wire.closed().spans).tool_calls
    assert [(call.name, call.outcome) for call in calls] == [("mcp/crm/ok", "ok"), ("mcp/crm/evil", "unanswered")]
    assert all(call.arguments == {"a": "NaN"} and call.arguments_text == '{"a":NaN}' for call in calls[:1])


def test_arguments_that_lose_something_keep_their_text() -> None:
    for text, value, kept in (
        ('{"a":1,"a":2}', {"a": 2}, True),
        ('{"n":9007199254740993}', {"n": 9007199254740993}, False),
        ('{"n":1E2}', {"n": 100.0}, True),
        ('{"n":NaN}', {"n": "NaN"}, True),
        ("null", None, False),
    ):
        (call,) = convert(Wire().call("x", text).closed().spans).tool_calls
        assert call.arguments == value
        assert call.arguments_text == (text if kept else None)


def test_cut_payloads_have_no_value_and_say_so() -> None:
    wire = Wire()
    attributes: dict[str, Attribute] = {
        v.TOOL_NAME: "x",
        v.TOOL_CANONICAL: "mcp/crm/x",
        **payload(v.TOOL_ARGUMENTS, "arguments", '{"a":"b', truncated=True),
        **payload(v.TOOL_RESULT, "result", '{"content":[', truncated=True),
    }
    wire.request("tools/call", attributes, decision="allow")
    trace = convert(wire.spans)
    (call,) = trace.tool_calls
    assert (call.arguments, call.arguments_truncated, call.result, call.result_truncated) == (None, True, None, True)
    assert events(trace, "mcp_tool_result")[0].fields["content_truncated"] is True


def test_no_spans_are_no_evidence() -> None:
    for spans in ([], [foreign()]):
        trace = convert(spans)
        assert (trace.messages, trace.tool_calls, trace.events) == ((), (), ())
        coverage = trace.coverage
        assert {coverage.messages, coverage.tool_calls, coverage.results, coverage.events} == {"none"}


@pytest.mark.parametrize("key", [v.MONO, v.OUTCOME, v.METHOD, v.SPAN_KIND])
def test_a_span_of_ours_that_lacks_what_it_must_have_is_an_error_that_names_it(key: str) -> None:
    span = Wire().call("x").spans[-1]
    attributes = {name: value for name, value in span.attributes.items() if name != key}
    with pytest.raises(ConvertError, match=rf"{span.span_id}.*{key}"):
        convert([replace(span, attributes=attributes)])


def test_arguments_that_are_no_json_keep_their_text() -> None:
    (call,) = convert(Wire().call("x", '{"a":', frame="{}").spans).tool_calls
    assert (call.arguments, call.arguments_text, call.arguments_truncated) == (None, '{"a":', False)


def test_a_cut_frame_alone_is_a_call_whose_arguments_nobody_knows() -> None:
    wire = Wire()
    text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"a":"'
    for decision in ("allow", "deny"):
        attributes: dict[str, Attribute] = {
            v.DECISION: decision,
            v.DECISION_ENFORCED: True,
            v.MALFORMED: "too long",
            v.METHOD: "tools/call",
            **payload(v.REQUEST, "request", text, truncated=True),
        }
        wire.span("decision", "decision", attributes, wire.tick())
    calls = convert(wire.spans).tool_calls
    assert [(call.name, call.outcome) for call in calls] == [("mcp/crm/big", "unanswered"), ("mcp/crm/big", "denied")]
    assert all(call.arguments is None and call.arguments_truncated for call in calls)
