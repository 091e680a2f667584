"""What of one trial can be told, measure by measure: observed, derived or not observable, with the reason.

Refuses to know how a trial was run and how a measure is shown. What cannot be observed is null, never 0.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from harness.assertions.assertion import Assertion
from harness.evidence import Evidence
from harness.models.prices import amount, cost_told, is_charged
from harness.outcomes import listed
from harness.trace import Event
from harness.verdict import Verdict
from proxy.spans import JSON

Seen = Literal["observed", "derived", "not observable"]
"""observed: we saw it ourselves. derived: made of what the target, or a file, says. not observable: nobody knows."""

MeasureName: TypeAlias = Literal[
    "task_success",
    "tool_correctness",
    "efficiency",
    "latency",
    "trajectory",
    "tokens",
    "cost",
    "handovers",
]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)
"""In the order in which they are shown."""

_BETWEEN_AGENTS = frozenset({"handoff", "delegation"})


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of one trial. `why` is a sentence for a person; `value` is None where it is not observable.

    It is None too where a measure could be observed and there is nothing to measure it by, and `why` says so. Units:
    task_success, tool_correctness 0 or 1; efficiency 0 to 1; latency seconds; trajectory and handovers a number of
    calls and events; tokens their number; cost US dollars.
    """

    seen: Seen
    why: str
    value: int | float | None = None

    def as_json(self) -> JSON:
        """`{seen, why, value}`."""
        return {"seen": self.seen, "why": self.why, "value": self.value}


Measures: TypeAlias = Mapping[str, Measure]
"""By MeasureName, all of them or none."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is known of a target beside the evidence: its name in reports, how long it ran, and its first text.

    `alone` is true for one whose loop is ours, so that no hand-over can be hidden in it.
    """

    target: str
    seconds: float | None = None
    first_ms: float | None = None
    alone: bool = False


def unobserved(why: str) -> dict[str, Measure]:
    """Every measure of a trial of which there is no evidence."""
    return {name: Measure("not observable", why) for name in MEASURES}


def observe(
    watched: Watched, evidence: Evidence, verdict: Verdict, assertions: Sequence[Assertion]
) -> dict[str, Measure]:
    """Every measure of a trial, whose first findings are those of the assertions, in order."""
    if verdict.status in ("infra_error", "harness_error", "cancelled"):
        return unobserved(f"the trial ended as {verdict.status}")
    calls = _calls(evidence)
    pairs = zip(assertions, verdict.findings, strict=False)
    wanted = {finding.id for assertion, finding in pairs if assertion.type in ("tool_called", "tool_calls")}
    measures: dict[MeasureName, Measure] = {
        "task_success": _success(verdict),
        "tool_correctness": _correctness(verdict, wanted, calls),
        "efficiency": _efficiency(verdict, calls),
        "latency": _latency(watched),
        "trajectory": calls,
        "tokens": _tokens(evidence.trace.events),
        "cost": _cost(evidence.trace.events),
        "handovers": _handovers(watched, evidence.trace.events),
    }
    return {name: measures[name] for name in MEASURES}


def _success(verdict: Verdict) -> Measure:
    if verdict.result not in ("pass", "fail"):
        return Measure("not observable", f"the verdict is {verdict.result}: {verdict.reason}")
    value = 1 if verdict.result == "pass" else 0
    deciding = [finding for finding in verdict.findings if finding.result == verdict.result]
    if deciding and all(finding.rests == "reported" for finding in deciding):
        return Measure("derived", "what decides it is what the target reports", value)
    return Measure("observed", "by the verdict", value)


def _calls(evidence: Evidence) -> Measure:
    """The full trajectory: which calls were made, with what, in which order."""
    trace = evidence.trace
    number = len(trace.tool_calls)
    calls = _counted(number)
    silent = [server for server in evidence.servers if server not in evidence.initialised]
    match trace.coverage.tool_calls:
        case "none" if evidence.recorded:
            return Measure("not observable", "the recorded trace has no list of calls")
        case "none" if evidence.servers:
            why = f"no connection to {', '.join(evidence.servers)} crossed the proxy"
            return Measure("not observable", why)
        case "none":
            return Measure("not observable", "the scenario names no server, and the target reports no calls")
        case "reported":
            return Measure("derived", f"{calls}, all as the target or a file reports them", number)
        case "wire":
            gaps = list(trace.gaps)
            if gaps:
                return Measure("derived", f"{calls} seen, and the record is not complete: {listed(gaps)}", number)
            nothing = f"; nothing reached {', '.join(silent)} through us" if silent else ""
            return Measure("observed", f"{calls} crossed the proxy{nothing}", number)


def _correctness(verdict: Verdict, wanted: Set[str], calls: Measure) -> Measure:
    if calls.seen == "not observable":
        return Measure("not observable", calls.why)
    findings = [finding for finding in verdict.findings if finding.id in wanted]
    told = [finding for finding in findings if finding.result in ("pass", "fail")]
    if not findings:
        return Measure(calls.seen, "no tool_called and no tool_calls of the scenario says which calls are right")
    if len(told) < len(findings):
        untold = [finding.id for finding in findings if finding not in told]
        return Measure(calls.seen, f"cannot be told by {listed(untold)}")
    missing = [finding.id for finding in told if finding.result == "fail"]
    if missing:
        return Measure(calls.seen, f"not by {listed(missing)}", 0)
    return Measure(calls.seen, f"by {listed([finding.id for finding in told])}", 1)


def _efficiency(verdict: Verdict, calls: Measure) -> Measure:
    if calls.seen == "not observable":
        return Measure("not observable", calls.why)
    for finding in verdict.findings:
        value = (finding.measures or {}).get("efficiency")
        if value is not None:
            return Measure(calls.seen, f"by {finding.id}: {finding.reason}", float(value))
    made = _counted(int(calls.value or 0))
    return Measure(calls.seen, f"no `efficiency` of the scenario says how few calls would do of {made}")


def _counted(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _latency(watched: Watched) -> Measure:
    if watched.seconds is None:
        return Measure("not observable", "nothing was run")
    first = "" if watched.first_ms is None else f", its first text after {watched.first_ms / 1000:.3f} s"
    return Measure("observed", f"from its start to its end{first}", round(watched.seconds, 3))


def _source(events: Sequence[Event]) -> Seen:
    return "derived" if any(event.reported for event in events) else "observed"


def _tokens(events: Iterable[Event]) -> Measure:
    found, failed = _charged(events)
    if not found:
        return Measure("not observable", _none_of(failed))
    counts = [amount(event.fields.get(key)) for event in found for key in ("in", "cached", "out")]
    known = [count for count in counts if count is not None]
    untold = [event for event in found if all(amount(event.fields.get(key)) is None for key in ("in", "out"))]
    if not known or untold:
        return Measure("not observable", f"{len(untold)} of {len(found)} calls of a model tell no tokens")
    seen = _source(found)
    what = "as the target reports them" if seen == "derived" else "as the model's answers count them"
    said = f"{what}, those from a cache included; model_call events: {len(found)}{_without(failed)}"
    return Measure(seen, said, sum(known))


def _cost(events: Iterable[Event]) -> Measure:
    found, failed = _charged(events)
    costs = [cost_told(event.fields) for event in found]
    known = [cost for cost in costs if cost is not None]
    if not found:
        return Measure("not observable", _none_of(failed))
    if len(known) < len(found):
        return Measure("not observable", f"the price of {len(found) - len(known)} of {len(found)} calls is not known")
    told = _source(found) == "derived" and any("cost" in event.fields for event in found)
    what = "as the target reports it" if told else "of tokens and a table of prices"
    return Measure("derived", f"{what}{_without(failed)}", sum(known))


def _charged(events: Iterable[Event]) -> tuple[list[Event], int]:
    """The calls of a model that count, and how many do not: one that failed before it took a token is no gap."""
    found = [event for event in events if event.type == "model_call"]
    charged = [event for event in found if is_charged(event.fields)]
    return charged, len(found) - len(charged)


def _none_of(failed: int) -> str:
    if failed:
        return f"no call of a model succeeded{_without(failed)}"
    return "neither the target nor its output tells of calls of a model"


def _without(failed: int) -> str:
    return f"; without {failed} that failed and tell no tokens" if failed else ""


def _handovers(watched: Watched, events: Iterable[Event]) -> Measure:
    found = [event for event in events if event.type in _BETWEEN_AGENTS]
    if found:
        seen = _source(found)
        return Measure(seen, "as the target reports them" if seen == "derived" else "by our own loop", len(found))
    if watched.alone:
        return Measure("observed", "its loop is ours, and handed nothing over", 0)
    return Measure("not observable", "the target is a black box, and reports none")
