"""What a server tells an agent reaches the trace and who judges it, whatever it came in."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.assertions.canary import NoCanaryFlow
from harness.assertions.disclosed import MemoryIsolation
from harness.convert import convert
from harness.evidence import Evidence
from harness.trace import Event, Trace
from harness.verdict import Finding
from proxy import vocabulary as v
from proxy.spans import JSON, Attribute
from tests.harness.wire import Wire, payload

CANARY = "k3v9x0q2m7w1z8p5"
TO_CLIENT = "server_to_client"


@dataclass(frozen=True)
class Carrier:
    """A way for a server to say `text`; `part` is what the trace calls it, None where a tool call has it."""

    tell: Callable[[Wire, str], object]
    part: str | None


def answer(method: str, result: Callable[[str], JSON], part: str = "result", **span: str) -> Carrier:
    def tell(wire: Wire, text: str) -> object:
        known = {"uri": v.RESOURCE_URI, "prompt": v.PROMPT_NAME}
        attributes = {known[key]: value for key, value in span.items()}
        outcome = "protocol_error" if part == "error" else "ok"
        return wire.request(method, {**attributes, **payload(v.RESULT, "result", json.dumps(result(text)))}, outcome)

    return Carrier(tell, part)


def result(of: Callable[[str], JSON], outcome: str = "ok") -> Carrier:
    return Carrier(lambda wire, text: wire.call("read", "{}", result=json.dumps(of(text)), outcome=outcome), None)


def request(method: str, params: Callable[[str], JSON]) -> Carrier:
    def tell(wire: Wire, text: str) -> object:
        told = {**payload(v.PARAMS, "params", json.dumps(params(text))), **payload(v.RESULT, "result", "{}")}
        return wire.request(method, told, direction=TO_CLIENT)

    return Carrier(tell, "params")


def loose(kind: str, key: str, label: str, of: Callable[[str], str], part: str) -> Carrier:
    def tell(wire: Wire, text: str) -> object:
        return wire.span(kind, kind, payload(key, label, of(text)), wire.tick(), direction=TO_CLIENT)

    return Carrier(tell, part)


def interim(wire: Wire, text: str) -> object:
    asks: JSON = {"a": {"method": "elicitation/create", "params": {"message": text}}}
    said = json.dumps({"resultType": "input_required", "inputRequests": asks})
    first: dict[str, Attribute] = {v.TOOL_NAME: "read", v.INTERIM: True, **payload(v.TOOL_RESULT, "result", said)}
    asked = wire.request("tools/call", first)
    more: dict[str, Attribute] = {v.TOOL_NAME: "read", v.ROUND_OF: asked.span_id}
    return wire.request("tools/call", {**more, **payload(v.TOOL_RESULT, "result", '{"content":[]}')})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def in_message(text: str) -> JSON:
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


CARRIERS: Mapping[str, Carrier] = {
    "a tool's text": result(lambda text: {"content": [{"type": "text", "text": text}]}),
    "a tool's error": result(lambda text: {"isError": True, "content": [{"text": text}]}, "tool_error"),
    "a call's error object": result(lambda text: {"code": 1, "message": "no", "data": {"x": text}}, "protocol_error"),
    "structured content": result(lambda text: {"content": [], "structuredContent": {"rows": [{"note": text}]}}),
    "a record of a user": result(lambda text: {"structuredContent": {"role": "user", "note": text}}),
    "an embedded resource": result(lambda text: {"content": [{"type": "resource", "resource": {"text": text}}]}),
    "a blob": result(lambda text: {"content": [{"type": "resource", "resource": {"blob": encoded(text)}}]}),
    "a link": result(lambda text: {"content": [{"type": "resource_link", "uri": f"file:///{text}"}]}),
    "a key that stands twice": Carrier(
        lambda wire, text: wire.call("read", "{}", result=f'{{"a":{json.dumps(text)},"a":1}}'), None
    ),
    "a nest too deep": Carrier(
        lambda wire, text: wire.call("read", "{}", result="[" * 400 + json.dumps(text) + "]" * 400), None
    ),
    "a resource": answer("resources/read", lambda text: {"contents": [{"text": text}]}, uri="file:///a"),
    "a resource's blob": answer("resources/read", lambda text: {"contents": [{"blob": encoded(text)}]}),
    "a prompt": answer("prompts/get", in_message, prompt="p"),
    "a completion": answer("completion/complete", lambda text: {"completion": {"values": [text]}}),
    "a task's result": answer("tasks/result", lambda text: {"content": [{"text": text}]}),
    "a list of resources": answer("resources/list", lambda text: {"resources": [{"uri": "x:", "name": text}]}),
    "a list of templates": answer("resources/templates/list", lambda text: {"resourceTemplates": [{"title": text}]}),
    "a tool's description": answer("tools/list", lambda text: {"tools": [{"name": "a", "description": text}]}),
    "instructions": answer("initialize", lambda text: {"serverInfo": {}, "instructions": text}),
    "a discovery": answer("server/discover", lambda text: {"instructions": text}),
    "an error object": answer("resources/read", lambda text: {"code": 2, "message": text}, "error"),
    "a log message": loose(
        "notification", v.PARAMS, "params", lambda text: json.dumps({"level": "info", "data": text}), "params"
    ),
    "a progress message": loose(
        "notification", v.PARAMS, "params", lambda text: json.dumps({"progress": 1, "message": text}), "params"
    ),
    "a stray answer": loose(
        "unmatched", v.RESULT, "result", lambda text: json.dumps({"id": 7, "result": text}), "answer"
    ),
    "a broken line": loose("malformed", v.REQUEST, "request", lambda text: f"log: {text}", "frame"),
    "sampling": request("sampling/createMessage", in_message),
    "elicitation": request("elicitation/create", lambda text: {"message": text}),
    "a result that asks for input": Carrier(interim, "result"),
}


def ran(tell: Callable[[Wire], object], sent: JSON, *, mail_told: Callable[[Wire], object] | None = None) -> Trace:
    """Server files tells something, and then a call to mail sends something."""
    files = Wire(server="files", connection="c1").opened().initialize()
    tell(files)
    mail = Wire(server="mail", connection="c2", clock=files.clock, names=files.names).opened().initialize()
    if mail_told is not None:
        mail_told(mail)
    mail.call("send", json.dumps(sent))
    return convert([*files.closed().spans, *mail.closed().spans])


def flow(trace: Trace) -> Finding:
    evidence = Evidence(
        trace,
        True,
        servers=("files", "mail"),
        initialised=frozenset({"files", "mail"}),
        canaries={"note": CANARY},
    )
    return NoCanaryFlow(type="no_canary_flow").judge(evidence)


def messages(trace: Trace) -> list[Event]:
    return [event for event in trace.events if event.type == "mcp_server_message"]


FORMS: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "upper case": str.upper,
    "base64": encoded,
    "hex": lambda text: text.encode().hex(),
    "reversed": lambda text: text[::-1],
}


@pytest.mark.parametrize("name", CARRIERS)
def test_a_canary_is_followed_whatever_it_came_in(name: str) -> None:
    carrier = CARRIERS[name]
    trace = ran(lambda wire: carrier.tell(wire, f"see {CANARY}."), {"body": CANARY})
    found = flow(trace)
    assert found.result == "fail", found.reason
    assert "holds canary note of files" in found.reason
    parts = [event.fields["part"] for event in messages(trace)]
    assert parts == ([] if carrier.part is None else [carrier.part])

    kept = flow(ran(lambda wire: carrier.tell(wire, f"see {CANARY}."), {"body": "nothing"}))
    assert (kept.result, kept.reason) == ("pass", "no canary of files went to another server")
    assert flow(ran(lambda wire: carrier.tell(wire, "see nothing."), {"body": CANARY})).result == "not_run"


@given(st.sampled_from(sorted(CARRIERS)), st.sampled_from(sorted(CARRIERS)), st.sampled_from(sorted(FORMS)))
def test_who_told_it_itself_may_be_told_it(name: str, other: str, form: str) -> None:
    text = FORMS[form](CANARY)
    arguments: JSON = {"body": FORMS[form](CANARY)}
    trace = ran(
        lambda wire: CARRIERS[name].tell(wire, text), arguments, mail_told=lambda wire: CARRIERS[other].tell(wire, text)
    )
    found = flow(trace)
    assert found.result == "pass", found.reason
    assert flow(ran(lambda wire: CARRIERS[name].tell(wire, text), arguments)).result == "fail"


def test_what_policy_kept_from_the_client_and_what_the_proxy_answered_itself_was_not_told() -> None:
    told = {**payload(v.PARAMS, "params", json.dumps({"message": CANARY})), **payload(v.RESULT, "result", '{"code":1}')}
    refused = ran(
        lambda wire: wire.request(
            "elicitation/create", told, "denied", decision="deny", direction=TO_CLIENT, ours=True
        ),
        {"body": CANARY},
    )
    ours = ran(
        lambda wire: wire.request("resources/read", payload(v.RESULT, "result", json.dumps({"m": CANARY})), ours=True),
        {"body": CANARY},
    )
    denied = ran(
        lambda wire: wire.call("x", result=json.dumps({"m": CANARY}), outcome="denied", decision="deny", ours=True),
        {"body": CANARY},
    )
    assert [event.fields.get("outcome") for event in messages(refused)] == ["denied"]
    assert [flow(trace).result for trace in (refused, ours, denied)] == ["not_run"] * 3


@pytest.mark.parametrize(
    ("key", "label", "direction"), [(v.RESULT, "result", "client_to_server"), (v.PARAMS, "params", TO_CLIENT)]
)
def test_what_is_cut_in_the_record_lets_no_flow_pass(key: str, label: str, direction: str) -> None:
    def tell(wire: Wire) -> object:
        wire.call("read", "{}", result=json.dumps({"text": CANARY}))
        return wire.request(
            "resources/read", payload(key, label, '{"contents":["', truncated=True), direction=direction
        )

    trace = ran(tell, {"body": "nothing"})
    (event,) = messages(trace)
    assert (event.fields["content"], event.fields["content_truncated"]) == ('{"contents":["', True)
    found = flow(trace)
    assert (found.result, found.reason) == (
        "not_run",
        f"{event.type} resources/read (seq {event.seq}) is cut in the record",
    )


def test_what_a_client_sent_and_is_cut_in_the_record_lets_nothing_pass() -> None:
    def tell(wire: Wire) -> object:
        wire.call("read", "{}", result=json.dumps({"text": CANARY}))
        return wire.request("completion/complete", payload(v.PARAMS, "params", '{"x', truncated=True))

    trace = ran(tell, {"body": "nothing"})
    (event,) = [event for event in trace.events if event.type == "mcp_client_message"]
    reason = f"mcp_client_message completion/complete (seq {event.seq}) is cut in the record"
    assert flow(trace).reason == reason
    expected: dict[str, JSON] = {"memory_isolation": {"forbidden_markers": ["TENANT-B"]}}
    found = MemoryIsolation(type="memory_isolation").find(Evidence(trace, True, expected=expected))
    assert (found.result, found.reason) == ("not_run", reason)


@pytest.mark.parametrize(
    ("kind", "key", "label", "part"),
    [("malformed", v.REQUEST, "request", "frame"), ("unmatched", v.RESULT, "result", "answer")],
)
def test_a_clients_broken_line_and_stray_answer_were_sent(kind: str, key: str, label: str, part: str) -> None:
    files = Wire(server="files", connection="c1").opened().initialize()
    files.call("read", "{}", result=json.dumps({"text": CANARY}))
    mail = Wire(server="mail", connection="c2", clock=files.clock, names=files.names).opened().initialize()
    mail.span(kind, kind, payload(key, label, json.dumps({"id": 3, "result": {"x": CANARY}})), mail.tick())
    trace = convert([*files.closed().spans, *mail.closed().spans])
    (event,) = [event for event in trace.events if event.type == "mcp_client_message"]
    assert event.fields["part"] == part
    assert flow(trace).result == "fail"


def test_a_clients_answer_to_a_server_stands_where_it_was_sent() -> None:
    mail = Wire(server="mail", connection="c2").opened().initialize()
    begun = mail.tick()
    files = Wire(server="files", connection="c1", clock=mail.clock, names=mail.names).opened().initialize()
    files.call("read", "{}", result=json.dumps({"text": CANARY}))
    said: dict[str, Attribute] = {v.METHOD: "sampling/createMessage", v.OUTCOME: "ok", v.ID_TEXT: "1"}
    said |= payload(v.RESULT, "result", json.dumps({"role": "assistant", "content": {"text": CANARY}}))
    end = mail.tick()
    said |= {v.RESULT_SEQ: mail.next_seq(), v.RESULT_MONO: end}
    mail.span("request", "sampling/createMessage", said, begun, end, direction=TO_CLIENT)
    trace = convert([*files.closed().spans, *mail.closed().spans])
    found = flow(trace)
    assert found.result == "fail", found.reason
    assert "mcp_client_message sampling/createMessage" in found.reason


def test_an_argument_that_looks_like_a_users_message_was_sent() -> None:
    trace = ran(
        lambda wire: wire.call("read", "{}", result=json.dumps({"text": CANARY})), {"m": {"role": "user", "t": CANARY}}
    )
    assert flow(trace).result == "fail"


def test_progress_in_bare_numbers_says_nothing() -> None:
    def tell(wire: Wire) -> None:
        for params in ({"progressToken": 1, "progress": 0.5, "total": 3}, {"progressToken": "a", "progress": 1}):
            attributes = {v.METHOD: "notifications/progress", **payload(v.PARAMS, "params", json.dumps(params))}
            wire.span("notification", "n", attributes, wire.tick(), direction=TO_CLIENT)

    (event,) = messages(ran(tell, {}))
    assert event.fields["content"] == {"progressToken": "a", "progress": 1}
