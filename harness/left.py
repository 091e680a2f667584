"""What a trial of a self-check left: its calls and its servers' rows, and whether two trials left alike.

Refuses to know verdicts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.explain import call_key
from harness.mutants import Mutant
from harness.othervalues import Rows
from harness.outcomes import is_ok
from harness.runfolder import TrialFolder
from harness.scenario import Scenario
from harness.state import load_state
from harness.steps import Call, Fetch, Step
from harness.trace import ToolCall, Trace
from harness.tracefile import load_trace
from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Left:
    """What a trial that passed left: its calls in order, and of each server the rows that it holds at the end."""

    trace: Trace
    before: Rows
    after: Rows
    changing: frozenset[int]


def left_by(scenario: Scenario, folder: TrialFolder) -> Left:
    """What stands in a trial's folder. Raises StateError and TraceFileError."""
    trace = load_trace(folder.trace)
    states = {server: load_state(folder.path / "state", server) for server in scenario.servers}
    keys = {call_key(row.connection, row.request_id) for state in states.values() for row in state.journal or ()}
    calls = enumerate(trace.tool_calls)
    return Left(
        trace,
        {server: state.before.tables for server, state in states.items() if state.before is not None},
        {server: state.after.tables for server, state in states.items()},
        frozenset(place for place, call in calls if call_key(call.connection, call.request_id) in keys - {None}),
    )


def is_equivalent(mutant: Mutant, left: Left, steps: tuple[Step, ...], right: Left) -> bool:
    """Whether it differs only in a step that need not be, and all else of state and calls is as it was; or in a write
    that changed nothing."""
    if mutant.kind == "another_tool":
        return right.after == left.after
    if mutant.step is None or mutant.kind not in ("dropped", "changed", "left_out"):
        return False
    step = steps[mutant.step]
    if not isinstance(step, Call | Fetch) or not step.optional:
        return False
    number = sum(isinstance(one, Call) for one in steps[: mutant.step])
    ours, theirs = list(map(_as_evidence, right.trace.tool_calls)), list(map(_as_evidence, left.trace.tool_calls))
    if isinstance(step, Fetch):
        return ours == theirs and right.after == left.after
    del ours[number]
    if mutant.kind != "dropped":
        del theirs[number]
    return ours == theirs and right.after == left.after and number not in right.changing


def _as_evidence(call: ToolCall) -> tuple[JSON, ...]:
    return call.name, call.arguments, call.outcome, call.result, is_ok(call)


def carried_by(steps: Sequence[Step], left: Left, canaries: Mapping[str, str]) -> dict[int, str]:
    """For each call of the reference that was answered with a canary, by its place, that canary."""
    places = [place for place, step in enumerate(steps) if isinstance(step, Call)]
    texts = {place: json.dumps(call.result) for place, call in zip(places, left.trace.tool_calls, strict=False)}
    found = {place: [one for one in canaries.values() if one in text] for place, text in texts.items()}
    return {place: there[0] for place, there in found.items() if there}
