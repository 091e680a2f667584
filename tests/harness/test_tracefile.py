import json
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.convert import convert
from harness.trace import Coverage, Event, Message, ToolCall, Trace
from harness.tracefile import load_trace, trace_from_json, trace_text, trace_to_json
from harness.traceread import TraceFileError
from proxy.spans import JSON
from tests.harness.shared_data import shared_data
from tests.harness.test_jsontext import values
from tests.harness.wire import two_processes

words = st.text(max_size=6)
maybe = st.one_of(st.none(), words)
places = st.integers(0, 99)
sources = st.sampled_from(["wire", "reported", "none"])
outcomes = st.sampled_from([None, "ok", "tool_error", "protocol_error", "denied", "unanswered", "cancelled"])
# A member of a source never has the name of a field of ours: the reader sees to that.
extras = st.dictionaries(st.text(max_size=4).map(lambda key: f"x{key}"), values, max_size=2)
flags = st.one_of(st.none(), st.booleans())

messages = st.builds(Message, role=words, content=values, seq=places, reported=st.booleans(), extra=extras)
events = st.builds(Event, type=words, fields=extras, seq=places, time=maybe, span_id=maybe, reported=st.booleans())
calls = st.builds(
    ToolCall,
    name=maybe,
    arguments=values,
    mcp_server_id=maybe,
    mcp_tool_name=maybe,
    mcp_method=maybe,
    trust=maybe,
    mcp_transport=maybe,
    seq=places,
    result_seq=st.one_of(st.none(), places),
    outcome=outcomes,
    result=values,
    is_error=flags,
    decision=maybe,
    decision_enforced=flags,
    decision_reason=maybe,
    agent=maybe,
    started_at=maybe,
    duration_ms=st.one_of(st.none(), st.floats(0, 1e6)),
    span_id=maybe,
    connection=maybe,
    request_id=maybe,
    arguments_text=maybe,
    arguments_truncated=st.booleans(),
    result_truncated=st.booleans(),
    names=st.lists(words, max_size=2).map(tuple),
    extra=extras,
)
traces = st.builds(
    Trace,
    coverage=st.builds(Coverage, sources, sources, sources, sources, sources),
    messages=st.lists(messages, max_size=2).map(tuple),
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    events=st.lists(events, max_size=2).map(tuple),
    order=st.sampled_from(["exact", "approximate"]),
    gaps=st.lists(words, max_size=2).map(tuple),
)


@settings(max_examples=50, deadline=None)
@given(traces)
def test_a_trace_that_was_written_reads_as_an_equal_one(trace: Trace) -> None:
    text = trace_text(trace)
    assert text.isascii()
    again = trace_from_json(json.loads(text), "t")
    assert again == trace
    assert trace_text(again) == text


def test_a_trace_of_spans_survives_its_file(tmp_path: Path) -> None:
    trace = convert(two_processes(), state="wire")
    path = tmp_path / "trace.json"
    path.write_text(trace_text(trace))
    assert load_trace(path) == trace


def test_the_three_lists_are_always_there() -> None:
    found = trace_to_json(Trace(Coverage()))
    assert found == {
        "schema_version": 1,
        "coverage": {"messages": "none", "tool_calls": "none", "results": "none", "events": "none", "state": "none"},
        "messages": [],
        "tool_calls": [],
        "events": [],
    }


def test_an_event_is_flat_and_has_its_place() -> None:
    event = Event("goal", {"id": "g"}, 3, "2026-01-01T00:00:00.000000000Z", "a1", True)
    found = trace_to_json(Trace(Coverage(), events=(event,)))["events"]
    assert found == [{"type": "goal", "id": "g", "seq": 3, "time": event.time, "span_id": "a1", "reported": True}]


def foreign(**parts: JSON) -> Trace:
    return trace_from_json(dict(parts), "t")


@pytest.mark.parametrize(
    ("call", "name", "names"),
    [
        ({"name": "a"}, "a", ("a",)),
        ({"tool": "b"}, "b", ("b",)),
        ({"tool_name": "c"}, "c", ("c",)),
        ({"tool": "b", "name": "a", "tool_name": "c"}, "a", ("a", "b", "c")),
        ({"name": " ", "tool": 7, "tool_name": " c "}, "c", ("c",)),
        ({"name": None, "tool": "b"}, "b", ("b",)),
        ({"function": {"name": "f", "arguments": "{}"}}, None, ("f",)),
        ({"name": "a", "function": {"name": "f"}}, "a", ("a", "f")),
        ({"arguments": {}}, None, ()),
    ],
)
def test_a_call_from_elsewhere_has_every_name_that_it_gives(
    call: dict[str, JSON], name: str | None, names: tuple[str, ...]
) -> None:
    (read,) = foreign(tool_calls=[call]).tool_calls
    assert (read.name, read.names) == (name, names)


def test_a_list_that_is_there_is_reported_and_one_that_is_absent_is_none() -> None:
    both = foreign(tool_calls=[], messages=[{"role": "user", "content": "x"}]).coverage
    assert (both.messages, both.tool_calls, both.events, both.results) == ("reported", "reported", "none", "none")
    nothing: list[dict[str, JSON]] = [{}, {"tool_calls": []}, {"tool_calls": [], "messages": [], "events": []}]
    for empty in nothing:
        assert trace_from_json(empty, "t").coverage == Coverage()
    assert foreign(tool_calls=[{"name": "a", "result": 1}]).coverage.results == "reported"


def test_members_of_odd_types_are_kept_and_never_taken_for_ours() -> None:
    trace = foreign(
        tool_calls=[{"name": "a", "seq": "9", "outcome": "great", "to": "x@y.z"}],
        events=[{"type": "e", "time": 5, "data": {"code": "c"}}],
        messages=[{"role": 1, "content": "c", "id": 2}],
    )
    assert trace.tool_calls[0].extra == {"source_seq": "9", "source_outcome": "great", "to": "x@y.z"}
    assert (trace.tool_calls[0].seq, trace.tool_calls[0].outcome) == (1, None)
    assert (trace.events[0].fields, trace.events[0].time) == ({"source_time": 5, "data": {"code": "c"}}, None)
    assert (trace.messages[0].role, trace.messages[0].extra) == ("", {"source_role": 1, "id": 2})
    assert trace_from_json(trace_to_json(trace), "t") == trace


EVENTS: list[dict[str, JSON]] = [
    {"type": "mcp_connection_initialized", "server_id": "crm"},
    {"type": "mcp_capabilities_negotiated", "server_id": "crm"},
    {"type": "mcp_tools_discovered", "server_id": "crm", "tools": [{"name": "a", "digest": "d"}]},
    {"type": "mcp_resource_read", "server_id": "crm", "uri": "file:///a", "outcome": "ok"},
    {"type": "mcp_prompt_get", "server_id": "crm", "mcp_prompt_name": "p", "outcome": "ok"},
    {
        "type": "mcp_tool_result",
        "server_id": "crm",
        "mcp_tool_name": "a",
        "name": "mcp/crm/a",
        "is_error": False,
        "content_truncated": False,
    },
    {"type": "mcp_client_request", "server_id": "crm", "method": "sampling/createMessage", "outcome": "ok"},
    {"type": "mcp_policy_decision", "server_id": "crm", "decision": "deny", "method": "tools/call", "enforced": True},
    {"type": "mcp_connection_closed", "server_id": "crm", "reason": "lost"},
    {"type": "goal", "id": "g"},
    {"type": "untrusted_context_received", "policy": "p"},
    {"type": "model_call", "in": 1, "out": 2, "cached": 0, "error": None},
    {"type": "handoff", "from": "a", "to": "b", "text": "t"},
    {"type": "delegation", "from": "a", "to": "b", "instruction": "i"},
    {"type": "summary", "from": "a", "to": "b", "text": "t"},
    {"type": "critique", "accepted": True, "text": "t"},
    {"type": "revision"},
    {"type": "fault", "server_id": "crm"},
    {"type": "approval", "id": "1", "tool": "mcp/crm/a", "used_seq": 4},
]
"""Every event of record.md section 5."""


def test_every_event_of_the_record_reads_from_a_file_as_it_stands() -> None:
    trace = foreign(events=cast("list[JSON]", EVENTS))
    for event, raw in zip(trace.events, EVENTS, strict=True):
        assert {"type": event.type, **event.fields} == raw


def test_what_a_target_says_of_the_wire_is_never_an_event_of_ours_or_a_canonical_name() -> None:
    raw: dict[str, JSON] = {
        "messages": [{"role": "assistant", "content": "x"}],
        "tool_calls": [{"name": "mcp/crm/a"}, {"tool": " MCP/crm/a"}, {"name": "a"}, {"function": {"name": "mcp/b/c"}}],
        "events": [*EVENTS, {"type": " MCP_tool_result "}],
    }
    for value in (raw, trace_to_json(trace_from_json(raw, "t"))):
        trace = trace_from_json(value, "t", "target")
        kinds = [event.type for event in trace.events]
        assert not [kind for kind in kinds if kind.strip().casefold().startswith("mcp_")]
        assert kinds[0] == "target:mcp_connection_initialized"
        assert "goal" in kinds
        assert all(event.reported for event in trace.events)
        assert all(message.reported for message in trace.messages)
        assert [call.name for call in trace.tool_calls] == ["target:mcp/crm/a", "target:MCP/crm/a", "a", None]
        # A denied name still counts, whoever says it.
        assert [call.names for call in trace.tool_calls] == [("mcp/crm/a",), ("MCP/crm/a",), ("a",), ("mcp/b/c",)]


def test_a_target_never_counts_as_the_wire() -> None:
    own = convert(two_processes(), state="wire")
    trace = trace_from_json(trace_to_json(own), "t", "target")
    coverage = trace.coverage
    assert (coverage.tool_calls, coverage.results, coverage.events) == ("reported",) * 3
    assert coverage.state == "none"
    assert all((call.name or "").startswith("target:") for call in trace.tool_calls)


OWN: dict[str, JSON] = {
    "schema_version": 1,
    "coverage": {"messages": "none", "tool_calls": "none", "results": "none", "events": "none", "state": "none"},
    "messages": [],
    "tool_calls": [],
    "events": [],
}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"schema_version": True}, "schema_version"),
        ({"coverage": {}}, "coverage"),
        ({"coverage": {**cast("dict[str, JSON]", OWN["coverage"]), "state": "seen"}}, "coverage.state"),
        ({"extra": 1}, "extra"),
        ({"order": "none"}, "order"),
        ({"gaps": "x"}, "gaps"),
        ({"messages": {}}, "messages"),
        ({"messages": [{"content": "x"}]}, r"messages\[0\].role"),
        ({"tool_calls": [1]}, r"tool_calls\[0\]"),
        ({"tool_calls": [{"seq": "1"}]}, r"tool_calls\[0\].seq"),
        ({"tool_calls": [{"name": 1}]}, r"tool_calls\[0\].name"),
        ({"tool_calls": [{"outcome": "fine"}]}, r"tool_calls\[0\].outcome"),
        ({"tool_calls": [{"is_error": 1}]}, r"tool_calls\[0\].is_error"),
        ({"tool_calls": [{"duration_ms": "1"}]}, r"tool_calls\[0\].duration_ms"),
        ({"tool_calls": [{"names": [1]}]}, r"tool_calls\[0\].names"),
        ({"events": [{"seq": 1}]}, r"events\[0\].type"),
        ({"events": [{"type": "x", "time": 1}]}, r"events\[0\].time"),
    ],
)
def test_a_broken_trace_of_ours_is_refused_by_file_and_field(
    tmp_path: Path, change: dict[str, JSON], field: str
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**OWN, **change}))
    with pytest.raises(TraceFileError, match=rf"trace\.json: {field}"):
        load_trace(path)


def test_each_list_of_ours_must_be_there() -> None:
    for name in ("messages", "tool_calls", "events", "coverage"):
        with pytest.raises(TraceFileError, match=f"{name}: is missing"):
            trace_from_json({key: value for key, value in OWN.items() if key != name}, "t")


@pytest.mark.parametrize("text", ["", "nope", "[]", "1", '{"messages": 1}', '{"events": [1]}', '{"tool_calls": {}}'])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(TraceFileError, match=r"t\.json"):
        load_trace(path)


def test_a_file_that_is_absent_or_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe{")
    for name in ("none", "bytes"):
        with pytest.raises(TraceFileError, match=name):
            load_trace(tmp_path / name)


def test_every_owasp_trace_is_read_whole() -> None:
    paths = sorted(shared_data("owasp", "traces").rglob("*.json"))
    assert len(paths) > 10
    for path in paths:
        check_owasp(json.loads(path.read_text()), load_trace(path))


def test_every_owasp_quirk_is_read_whole() -> None:
    cases = json.loads(shared_data("owasp", "quirks.json").read_text())
    assert len(cases) == 52
    for case in cases:
        check_owasp(case["trace"], trace_from_json(case["trace"], case["case"]))


def check_owasp(raw: dict[str, list[dict[str, JSON]]], trace: Trace) -> None:
    assert [message.content for message in trace.messages] == [item.get("content") for item in raw.get("messages", [])]
    assert [event.type for event in trace.events] == [item["type"] for item in raw.get("events", [])]
    for event, item in zip(trace.events, raw.get("events", []), strict=True):
        assert {"type": event.type, **event.fields} == item
    for call, item in zip(trace.tool_calls, raw.get("tool_calls", []), strict=True):
        assert call.name == item.get("name")
        assert call.arguments == item.get("arguments")
    assert trace_from_json(trace_to_json(trace), "again") == trace
    assert (trace.coverage == Coverage()) == (not any(raw.get(name) for name in ("messages", "tool_calls", "events")))
