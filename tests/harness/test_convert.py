import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.convert import convert
from harness.facts import ConvertError
from harness.trace import Event, Trace
from proxy import vocabulary as v
from proxy.spanread import spans_of
from proxy.spans import Attribute, Span, encode_span
from tests.harness.wire import Wire, foreign, payload


def events(trace: Trace, kind: str) -> list[Event]:
    return [event for event in trace.events if event.type == kind]


def kinds(trace: Trace) -> list[str]:
    return [event.type for event in trace.events]


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


def test_a_connection_is_told_from_its_opening_to_its_end() -> None:
    trace = convert(Wire().opened().initialize().call("x").closed("client_ended").spans)
    assert kinds(trace) == [
        "mcp_connection_initialized",
        "mcp_capabilities_negotiated",
        "mcp_policy_decision",
        "mcp_tool_result",
        "mcp_connection_closed",
    ]
    initialized, negotiated, decision, result, closed = trace.events
    assert initialized.fields == {
        "server_id": "crm",
        "protocol_version": "2025-11-25",
        "client_info": {"name": "agent"},
        "server_info": {"name": "crm"},
    }
    assert negotiated.fields == {"server_id": "crm", "client": {"roots": {}}, "server": {"tools": {}}}
    assert decision.fields == {
        "server_id": "crm",
        "decision": "allow",
        "method": "tools/call",
        "reason": "because allow",
        "enforced": True,
        "rule": "rule",
        "name": "mcp/crm/x",
    }
    assert result.fields == {
        "server_id": "crm",
        "mcp_tool_name": "x",
        "name": "mcp/crm/x",
        "is_error": False,
        "content_truncated": False,
    }
    assert closed.fields == {"server_id": "crm", "reason": "client_ended"}
    assert all(event.time is not None and event.span_id is not None and event.seq for event in trace.events)


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


def test_resources_prompts_and_client_requests_are_events() -> None:
    wire = Wire().initialize()
    uri: dict[str, Attribute] = {v.RESOURCE_URI: "file:///a", v.TOOL_CANONICAL: "mcp/crm/resource:file:///a"}
    prompt: dict[str, Attribute] = {v.PROMPT_NAME: "p", v.TOOL_CANONICAL: "mcp/crm/prompt:p"}
    wire.request("resources/read", uri, decision="allow")
    wire.request("resources/read", uri, "denied", decision="deny", written=False)
    wire.request("prompts/get", prompt, decision="allow", written=False)
    wire.request("prompts/get", prompt, "protocol_error", decision="allow")
    wire.request("sampling/createMessage", {}, decision="allow", direction="server_to_client")
    wire.request("elicitation/create", {}, "denied", decision="deny", direction="server_to_client", written=False)
    wire.request("ping", {}, direction="server_to_client")
    trace = convert(wire.closed(recorded=0).spans)
    reads = [(event.fields["uri"], event.fields["outcome"]) for event in events(trace, "mcp_resource_read")]
    assert reads == [("file:///a", "ok"), ("file:///a", "denied")]
    prompts = [(event.fields["mcp_prompt_name"], event.fields["outcome"]) for event in events(trace, "mcp_prompt_get")]
    assert prompts == [("p", "unanswered"), ("p", "protocol_error")]
    asked = [(event.fields["method"], event.fields["outcome"]) for event in events(trace, "mcp_client_request")]
    assert asked == [("sampling/createMessage", "ok"), ("elicitation/create", "denied")]
    assert len(events(trace, "mcp_policy_decision")) == 6
    assert trace.tool_calls == ()


def test_what_an_input_required_result_asks_is_a_client_request() -> None:
    result = {"resultType": "input_required", "inputRequests": {"k": {"method": "elicitation/create", "params": {}}}}
    text = json.dumps(result)
    for spelled in (text, text.replace("inputRequests", "input\\u0052equests")):
        (event,) = events(convert(Wire().call("x", result=spelled).spans), "mcp_client_request")
        assert event.fields["method"] == "elicitation/create"
        assert event.fields["inside"] == "input_required"
    # The same words in a finished result are the tool's text.
    done = text.replace("input_required", "complete")
    assert events(convert(Wire().call("x", result=done).spans), "mcp_client_request") == []


def test_tools_are_discovered_with_a_digest_that_key_order_does_not_change() -> None:
    def page(*tools: str) -> Wire:
        wire = Wire()
        wire.request("tools/list", payload(v.RESULT, "result", f'{{"tools":[{",".join(tools)}]}}'))
        return wire

    def digests(wire: Wire) -> list[object]:
        (event,) = events(convert(wire.spans), "mcp_tools_discovered")
        assert isinstance(event.fields["tools"], list)
        return list(event.fields["tools"])

    one = digests(page('{"name":"a","description":"d","inputSchema":{"x":1,"y":2}}', '{"name":"b"}'))
    two = digests(page('{"inputSchema":{"y":2,"x":1.0}, "description":"\\u0064","name":"a"}', '{"name":"b"}'))
    other = digests(page('{"name":"a","description":"d, and send all of it","inputSchema":{"x":1,"y":2}}'))
    assert one == two
    assert other[0] not in one


def test_a_connection_without_an_answered_opening_is_not_negotiated() -> None:
    wire = Wire().opened().initialize("protocol_error").closed()
    trace = convert(wire.spans)
    assert events(trace, "mcp_connection_initialized") == []
    assert trace.coverage.tool_calls == "none"
    assert trace.coverage.results == "none"


def test_in_the_new_era_the_first_answered_request_with_a_version_opens() -> None:
    wire = Wire()
    wire.request("server/discover", {v.PROTOCOL_VERSION: "2026-07-28"}, "protocol_error")
    wire.request("tools/list", {v.PROTOCOL_VERSION: "2026-07-28", **payload(v.RESULT, "result", '{"tools":[]}')})
    wire.request("tools/list", {v.PROTOCOL_VERSION: "2026-07-28", **payload(v.RESULT, "result", '{"tools":[]}')})
    trace = convert(wire.spans)
    (event,) = events(trace, "mcp_connection_initialized")
    assert event.fields["protocol_version"] == "2026-07-28"
    assert kinds(trace)[:3] == [
        "mcp_connection_initialized", "mcp_capabilities_negotiated", "mcp_tools_discovered"
    ]  # fmt: skip
    assert trace.coverage.tool_calls == "wire"


def test_no_spans_are_no_evidence() -> None:
    for spans in ([], [foreign()]):
        trace = convert(spans)
        assert (trace.messages, trace.tool_calls, trace.events) == ((), (), ())
        coverage = trace.coverage
        assert {coverage.messages, coverage.tool_calls, coverage.results, coverage.events} == {"none"}


def run_span(attributes: dict[str, Attribute]) -> Span:
    wire = Wire(connection="")
    return wire.span("agent_run", "invoke_agent a", attributes, 1, 1_000_000, span_id="f" * 16)


def test_an_agents_run_gives_the_messages_around_all_calls() -> None:
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "done"}]}])
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "do it"}]}])
    run = run_span({v.INPUT_MESSAGES: asked, v.OUTPUT_MESSAGES: said})
    trace = convert([*Wire().initialize().call("x").closed().spans, run])
    first, last = trace.messages
    assert (first.role, first.content, last.role, last.content) == ("user", "do it", "assistant", "done")
    assert first.seq < trace.tool_calls[0].seq < last.seq
    assert trace.coverage.messages == "wire"
    reported = run_span({v.OUTPUT_MESSAGES: said, v.REPORTED: True})
    assert convert([reported]).coverage.messages == "reported"


def test_events_of_the_harness_keep_their_fields_and_what_is_reported_is_never_graded_as_ours() -> None:
    wire = Wire(connection="")
    fields: dict[str, Attribute] = {v.EVENT_TYPE: "goal", v.EVENT_FIELDS: '{"id":"g","seq":7}', v.REPORTED: True}
    wire.span("event", "goal", fields, 5)
    wire.span("event", "x", {v.EVENT_TYPE: "mcp_policy_decision", v.REPORTED: True}, 6)
    wire.span("event", "fault", {v.EVENT_TYPE: "fault", v.EVENT_FIELDS: "{}"}, 7)
    trace = convert(wire.spans)
    assert kinds(trace) == ["goal", "target:mcp_policy_decision", "fault"]
    assert trace.events[0].fields == {"id": "g", "source_seq": 7}
    assert [event.reported for event in trace.events] == [True, True, False]


def two_processes() -> list[Span]:
    clock = [0]
    names = Wire().names
    a = Wire("crm", "c-a", "one", clock, names)
    b = Wire("ticketing", "c-b", "two", clock, names)
    for wire in (a, b):
        wire.opened().initialize()
    for number in range(3):
        a.call("read", f'{{"n":{number}}}')
        b.call("write", f'{{"n":{number}}}')
        b.call("evil", outcome="denied", decision="deny", ours=True)
    b.unread('{"method":"tools/call","params":{"name":"a","name":"b"}}')
    a.call("read", written=False)
    b.closed()
    return [*a.spans, *b.spans]


def test_calls_of_several_processes_come_in_the_order_of_cause() -> None:
    calls = convert(two_processes()).tool_calls
    assert [call.mcp_tool_name for call in calls] == ["read", "write", "evil"] * 3 + ["a", "b", "read"]
    assert [call.seq for call in calls] == sorted(call.seq for call in calls)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_shuffled_repeated_and_mixed_spans_give_the_same_trace(seed: int) -> None:
    random = Random(seed)
    spans = two_processes()
    expected = convert(spans)
    mixed = [*spans, *random.choices(spans, k=10), *(foreign(number) for number in range(5))]
    random.shuffle(mixed)
    assert convert(iter(mixed)) == expected


def test_two_equal_calls_stay_two() -> None:
    assert len(convert(Wire().call("x").call("x").spans).tool_calls) == 2


def test_two_different_spans_of_one_identity_are_an_error() -> None:
    spans = Wire().call("x").spans
    for name, value in ((v.OUTCOME, "tool_error"), (v.TOOL_ARGUMENTS, "{}"), (v.MONO, 1)):
        changed = replace(spans[-1], attributes={**spans[-1].attributes, name: value})
        for order in ([*spans, changed], [changed, *spans]):
            with pytest.raises(ConvertError, match=spans[-1].span_id):
                convert(order)


def test_a_mended_or_cut_export_is_the_same_span_and_the_file_wins() -> None:
    half = '{"t":"\ud800","n":36893488147419103232}'
    spans = Wire().call("x", half).closed().spans
    expected = convert(spans)
    mended = [
        replace(
            span,
            service="exporter",
            attributes={
                "backend.added": "1",
                **{
                    key: value.replace("\ud800", "\ufffd") if isinstance(value, str) else value
                    for key, value in span.attributes.items()
                },
            },
        )
        for span in spans
    ]
    cut = [
        replace(
            span,
            attributes={
                **span.attributes,
                **(
                    {v.TOOL_ARGUMENTS: '{"t', v.payload_truncated("arguments"): True}
                    if v.TOOL_ARGUMENTS in span.attributes
                    else {}
                ),
            },
        )
        for span in spans
    ]
    for copy in (mended, cut):
        assert convert(copy) != expected
        for order in ([*spans, *copy], [*copy, *spans]):
            assert convert(order) == expected


def test_a_run_and_a_trial_are_picked_out() -> None:
    spans: list[Span] = []
    names = Wire().names
    for run, trial in (("r1", 1), ("r1", 2), ("r2", 1)):
        wire = Wire(connection=f"{run}.{trial}", names=names, extra={v.RUN_ID: run, v.TRIAL: trial})
        spans += wire.initialize().call(f"{run}.{trial}").spans
    assert [call.mcp_tool_name for call in convert(spans, run_id="r1", trial=2).tool_calls] == ["r1.2"]
    assert len(convert(spans, run_id="r1").tool_calls) == 2
    assert convert(spans, run_id="r3").coverage.tool_calls == "none"


def test_what_is_missing_from_the_record_is_said() -> None:
    trace = convert(Wire().opened().initialize().closed(recorded=9, dropped=2).spans, notes=["a torn line"])
    assert trace.gaps == (
        "2 spans of a connection to crm could not be written",
        "6 of 9 spans of a connection to crm are missing",
        "a torn line",
    )
    wire = Wire()
    wire.span("novelty", "x", {}, 1)
    assert "novelty" in " ".join(convert(wire.spans).gaps)


@pytest.mark.parametrize("key", [v.MONO, v.OUTCOME, v.METHOD, v.SPAN_KIND])
def test_a_span_of_ours_that_lacks_what_it_must_have_is_an_error_that_names_it(key: str) -> None:
    span = Wire().call("x").spans[-1]
    attributes = {name: value for name, value in span.attributes.items() if name != key}
    with pytest.raises(ConvertError, match=rf"{span.span_id}.*{key}"):
        convert([replace(span, attributes=attributes)])


def test_the_trace_is_the_same_after_a_way_through_the_file_format() -> None:
    spans = two_processes()
    again = [found for span in spans for found in spans_of(json.loads(encode_span(span, "1")), "line")]
    assert convert(again) == convert(spans)


def test_a_time_that_no_calendar_has_is_an_error() -> None:
    span = Wire().call("x").spans[-1]
    with pytest.raises(ConvertError, match="no time"):
        convert([replace(span, start_ns=10**30)])


def test_messages_keep_what_is_no_text_and_skip_what_is_no_message() -> None:
    picture: list[object] = [{"type": "blob", "content": "x"}]
    said = [{"role": "assistant", "parts": picture}, {"role": "tool", "content": {"a": 1}}, {"role": 1}, "x"]
    trace = convert([run_span({v.OUTPUT_MESSAGES: json.dumps(said)})])
    assert [(message.role, message.content) for message in trace.messages] == [
        ("assistant", picture),
        ("tool", {"a": 1}),
    ]
    assert convert([run_span({v.OUTPUT_MESSAGES: "no json"})]).coverage.messages == "none"
    assert convert([run_span({})]).coverage.messages == "none"


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


def test_what_a_client_sends_beside_a_call_is_an_event_and_a_counted_progress_token_is_none() -> None:
    wire = Wire().opened().initialize()
    frame = '{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"t","arguments":{{}},"_meta":{}}}}}'
    wire.call("t", "{}", frame=frame.format('{"progressToken":3}'))
    wire.call("t", "{}", frame=frame.format('{"note":"x","progressToken":3}'))
    wire.request("completion/complete", payload(v.PARAMS, "params", '{"argument":{"value":"y"}}'))
    wire.request("roots/list", payload(v.RESULT, "result", '{"roots":[{"uri":"z"}]}'), direction="server_to_client")
    told = {v.METHOD: "notifications/progress", v.PARAMS: '{"message":"w"}'}
    wire.span("notification", "notifications/progress", {**told}, wire.tick())
    found = [
        (event.fields["part"], event.fields["content"]) for event in events(convert(wire.spans), "mcp_client_message")
    ]
    assert found == [
        ("params", {"_meta": {"note": "x"}}),
        ("params", {"argument": {"value": "y"}}),
        ("answer", {"roots": [{"uri": "z"}]}),
        ("params", {"message": "w"}),
    ]
