"""Whether what went wrong was made good: a call that failed, or met an injected fault, and a later one that ended well.

Refuses to know why calls go wrong, and what a verdict makes of it.
"""

from collections.abc import Sequence

from harness.outcomes import is_ok
from harness.trace import ToolCall, Trace
from harness.verdict import FaultCount

SPOILING = frozenset({"error", "timeout", "empty", "cut", "lost"})
"""Faults after which the agent lacks what it called for; a late answer is an answer."""


def went_wrong(call: ToolCall) -> bool:
    """Whether the call ended in an error, or a fault kept its answer, or part of it, from the agent."""
    return bool(call.is_error) or call.outcome in ("tool_error", "protocol_error") or call.fault in SPOILING


def is_recovered(call: ToolCall, same: Sequence[ToolCall]) -> bool:
    """Whether a later one of the calls of the `same` tool, with any arguments and by any agent, ended ok and whole."""
    return any(later.seq > call.seq and is_ok(later) and later.fault not in SPOILING for later in same)


def count_faults(trace: Trace) -> FaultCount:
    """The injected faults of a trace: how many calls they fell on, and which of those were made good.

    A fault whose call never got an answer from its server has spoilt nothing: then the server is to blame.
    """
    told = [event for event in trace.events if event.type == "fault" and not event.reported]
    calls = trace.tool_calls
    spoilt = [call for call in calls if call.fault in SPOILING]
    recovered = [call for call in spoilt if is_recovered(call, [one for one in calls if one.name == call.name])]
    return FaultCount(len(told), len(spoilt), len(recovered))
