"""What tests look for in a trace."""

from harness.trace import Event, Trace


def events(trace: Trace, kind: str) -> list[Event]:
    return [event for event in trace.events if event.type == kind]


def kinds(trace: Trace) -> list[str]:
    return [event.type for event in trace.events]
