"""What a target said of itself, put beside what was seen of it: never in its place.

Refuses to know files and spans.
"""

from dataclasses import replace

from harness.trace import Event, Message, ToolCall, Trace
from harness.tracefile import trace_from_json
from proxy.spans import JSON


def beside(trace: Trace, said: JSON, where: str) -> Trace:
    """The trace of the wire with the messages and events that the target reports, which are marked.

    Its calls are taken only where no connection crossed our wire at all, and then count as reported; else those that
    were seen are all the calls that there are. Its messages come before the answer that was taken down, which stays the
    last, and is not there twice. Raises TraceFileError, which names `where`.
    """
    told = trace_from_json(said, where, "target")
    place = max([0, *(item.seq for part in (trace.messages, trace.tool_calls, trace.events) for item in part)])
    events: tuple[Event, ...] = tuple(replace(event, seq=place + at) for at, event in enumerate(told.events, 1))
    coverage = trace.coverage
    calls: tuple[ToolCall, ...] = trace.tool_calls
    if coverage.tool_calls == "none" and told.coverage.tool_calls != "none":
        calls = tuple(replace(call, seq=place + len(events) + at) for at, call in enumerate(told.tool_calls, 1))
        coverage = replace(coverage, tool_calls="reported", results=told.coverage.results)
    if events and coverage.events == "none":
        coverage = replace(coverage, events="reported")
    messages = _messages(trace.messages, told.messages)
    return replace(trace, coverage=coverage, messages=messages, tool_calls=calls, events=(*trace.events, *events))


def _messages(seen: tuple[Message, ...], said: tuple[Message, ...]) -> tuple[Message, ...]:
    before = tuple(message for message in seen if message.role == "user")
    answer = seen[len(before) :]
    if not answer:
        return (*seen, *said)
    if said and (said[-1].role, said[-1].content) == (answer[-1].role, answer[-1].content):
        said = said[:-1]
    return (*before, *(replace(message, seq=answer[0].seq) for message in said), *answer)
