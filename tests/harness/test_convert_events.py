"""Connections, messages and events of a trace, from spans."""

import json

from harness.convert import convert
from proxy import vocabulary as v
from proxy.spans import Attribute, Span
from tests.harness.traced import events, kinds
from tests.harness.wire import Wire, payload


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
