"""A trace as JSON: written in one shape (record.md section 5), read back, and read from other harnesses.

Refuses to know spans and verdicts. What a target hands in about itself is marked so that it is never graded.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from harness.jsontext import JsonReader
from harness.marks import marked_call, marked_event
from harness.places import text_of
from harness.trace import Coverage, Event, Message, Source, ToolCall, Trace
from harness.traceread import PARTS, SCHEMA_VERSION, Object, TraceFileError, read_foreign, read_own
from proxy.spans import JSON

Origin: TypeAlias = Literal["file", "target"]
"""file: recorded, by us or by another harness. target: handed in by the very thing that is judged."""
_ENCODER = json.JSONEncoder(allow_nan=False)


def trace_to_json(trace: Trace) -> Object:
    """The trace as a JSON object. The three lists are always there; what is unset is left out."""
    return {
        **_head(trace),
        "messages": [_message_object(message) for message in trace.messages],
        "tool_calls": [call_to_json(call) for call in trace.tool_calls],
        "events": [_event_object(event) for event in trace.events],
    }


def trace_chunks(trace: Trace) -> Iterator[str]:
    """The text of trace.json in pieces, ASCII, one message, call or event a line; equal traces give equal text."""
    yield "{"
    for name, value in _head(trace).items():
        yield f'"{name}": {json.dumps(value)},\n'
    yield from _list("messages", map(_message_object, trace.messages), ",")
    yield from _list("tool_calls", map(call_to_json, trace.tool_calls), ",")
    yield from _list("events", map(_event_object, trace.events), "}")


def trace_text(trace: Trace) -> str:
    """The whole text of trace.json, with a newline at its end."""
    return "".join(trace_chunks(trace))


def _list(name: str, items: Iterable[Object], after: str) -> Iterator[str]:
    yield f'"{name}": ['
    between = "\n"
    for item in items:
        yield f"{between}{_ENCODER.encode(item)}"
        between = ",\n"
    yield f"]{after}\n"


def _head(trace: Trace) -> Object:
    coverage = trace.coverage
    found: Object = {
        "schema_version": SCHEMA_VERSION,
        "coverage": {part: getattr(coverage, part) for part in PARTS},
    }
    if trace.order != "exact":
        found["order"] = trace.order
    if trace.gaps:
        found["gaps"] = list(trace.gaps)
    return found


def _message_object(message: Message) -> Object:
    found: Object = {"role": message.role, "content": message.content, "seq": message.seq}
    if message.reported:
        found["reported"] = True
    return {**found, **message.extra}


def call_to_json(call: ToolCall) -> Object:
    """One tool call as it stands in the trace."""
    found: Object = {"name": call.name, "arguments": call.arguments}
    optional: Object = {
        "mcp_server_id": call.mcp_server_id,
        "mcp_tool_name": call.mcp_tool_name,
        "mcp_method": call.mcp_method,
        "trust": call.trust,
        "mcp_transport": call.mcp_transport,
        "seq": call.seq,
        "result_seq": call.result_seq,
        "outcome": call.outcome,
        "result": call.result,
        "is_error": call.is_error,
        "decision": call.decision,
        "decision_enforced": call.decision_enforced,
        "decision_reason": call.decision_reason,
        "agent": call.agent,
        "started_at": call.started_at,
        "duration_ms": call.duration_ms,
        "span_id": call.span_id,
        "connection": call.connection,
        "request_id": call.request_id,
        "arguments_text": call.arguments_text,
        "arguments_truncated": call.arguments_truncated or None,
        "result_truncated": call.result_truncated or None,
        "names": list(call.names) or None,
        "rounds": list(call.rounds) or None,
        "fault": call.fault,
        "server_outcome": call.server_outcome,
    }
    found |= {key: value for key, value in optional.items() if value is not None}
    return {**found, **call.extra}


def _event_object(event: Event) -> Object:
    found: Object = {"type": event.type, **event.fields, "seq": event.seq}
    if event.time is not None:
        found["time"] = event.time
    if event.span_id is not None:
        found["span_id"] = event.span_id
    if event.reported:
        found["reported"] = True
    return found


def load_trace(path: Path, origin: Origin = "file") -> Trace:
    """Read the trace in `path`. Raises TraceFileError."""
    try:
        text = text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        raise TraceFileError(f"{path}: cannot be read: {error}") from error
    reader = JsonReader()
    value = reader.read(text)
    if not reader.readable:
        raise TraceFileError(f"{path}: is no JSON that can be read; a trace is one JSON object")
    return trace_from_json(value, str(path), origin)


def trace_from_json(value: JSON, where: str, origin: Origin = "file") -> Trace:
    """The trace in a JSON value; `where` names its file in a TraceFileError.

    With `schema_version` it is one of ours, read field by field; without, it is one of another harness: what is there
    is kept, what it does not say stays unsaid. From a target, `mcp_*` events and canonical names are marked, and
    nothing counts as more than reported.
    """
    if not isinstance(value, dict):
        raise TraceFileError(f"{where}: a trace is a JSON object")
    trace = read_own(value, where) if "schema_version" in value else read_foreign(value, where)
    return _of_target(trace) if origin == "target" else trace


def _of_target(trace: Trace) -> Trace:
    calls = tuple(marked_call(call) for call in trace.tool_calls)
    events = tuple(marked_event(event) for event in trace.events)
    messages = tuple(Message(m.role, m.content, m.seq, True, m.extra) for m in trace.messages)
    parts: dict[str, Source] = {
        part: "none" if getattr(trace.coverage, part) == "none" else "reported" for part in PARTS
    }
    parts["state"] = "none"
    return Trace(Coverage(**parts), messages, calls, events, trace.order, trace.gaps)
