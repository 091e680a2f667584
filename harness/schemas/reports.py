"""The schema of report.json, which is also what `--format json` prints.

Refuses to know how any of it is found out; a test holds reports of real runs against it.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from harness.intake import Entry
from harness.observability import MeasureName, Seen
from harness.results import Kind
from harness.scenariofile import Severity
from harness.verdict import FailureCategory, Mode, Rests, Result, Status
from proxy.spans import JSON

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Interval: TypeAlias = Annotated[list[Share], Field(min_length=2, max_length=2)]


class Rate(Entry):
    """Passes over trials; `rate` is null of none."""

    passed: Count
    trials: Count
    rate: Share | None


class Opinion(Entry):
    """What a judge says; `success` is null where it failed."""

    judge: str
    success: Literal[0, 1] | None
    reasoning: str
    attempts: Annotated[int, Field(ge=1)]


_NO_OPINION = Opinion(judge="", success=None, reasoning="", attempts=1)


class Opinions(Entry):
    """A judge's opinions over trials; `rate` is null of none, and in none of the numbers are those that failed."""

    judges: list[str]
    judged: Count
    success: Count
    rate: Share | None
    against_verdict: Count
    judge_failed: Count


_NO_OPINIONS = Opinions(judges=[], judged=0, success=0, rate=None, against_verdict=0, judge_failed=0)


class Faults(Entry):
    """Injected faults: met by calls, those that cost an answer, and those made good."""

    met: Count
    spoilt: Count
    recovered: Count


class Finding(Entry):
    """What one assertion found; counts and `measures` only where it took some."""

    id: str
    result: Result
    reason: str
    rests: Rests
    attempted: Count = 0
    blocked: Count = 0
    executed: Count = 0
    measures: dict[str, float | None] = Field(default_factory=dict)
    opinion: Opinion = Field(default=_NO_OPINION)


class Measured(Entry):
    """One measure of one trial; `value` is null where it is not observable, or nothing says how to measure it."""

    seen: Seen
    why: str
    value: float | None


class Sighted(Entry):
    """One measure of one target: in how many trials it was what, and the most frequent reasons."""

    observed: Count
    derived: Count
    not_observable: Count = Field(alias="not observable")
    why: list[str]


class Trial(Entry):
    """One trial, as it also stands in its verdict.json."""

    scenario: str
    trial: Annotated[int, Field(ge=1)]
    result: Result
    status: Status
    reason: str
    category: FailureCategory | None
    also: list[FailureCategory]
    coordination: Mode | None
    findings: list[Finding]
    valid: bool
    seconds: Annotated[float, Field(ge=0)]
    kind: Kind
    model: str | None
    folder: str | None
    gaps: list[str]
    doubts: list[str]
    target: str
    measures: dict[MeasureName, Measured]
    kept: str = ""
    faults: Faults = Field(default=Faults(met=0, spoilt=0, recovered=0))


class Wilson(Entry):
    """Wilson's interval of the share of passes."""

    interval: Interval | None
    assumes: str


class StandardErrors(Entry):
    """Of the share of passes: as if trials were independent, and clustered by scenario."""

    naive: float | None
    clustered: float | None


class Bootstrap(Entry):
    """95 % intervals over scenarios drawn again and again."""

    rate: Interval | None
    pass_hat: dict[str, Interval | None]
    rough: bool


class Repeats(Entry):
    """Estimates over repeated trials; what is null is explained in `why_null`, and a k past the trials is null."""

    tasks: Count
    trials: Count
    passed: Count
    lost: Count
    rate: Share | None
    bounds: Interval | None
    pass_hat: dict[str, Share | None]
    pass_at: dict[str, Share | None]
    wilson: Wilson
    standard_error: StandardErrors
    bootstrap: Bootstrap
    why_null: str | None


class Scenario(Entry):
    """One scenario with all its trials."""

    id: str
    title: str
    category: str
    severity: Severity | None
    labels: dict[str, str]
    result: Result
    statuses: dict[Status, Count]
    over_all: Rate
    over_valid: Rate
    repeats: Repeats
    opinions: Opinions = Field(default=_NO_OPINIONS)
    trials: list[Trial]


class Report(Entry):
    """A whole run."""

    schema_version: Literal[1]
    run_id: str
    result: Result
    exit_code: Literal[0, 1, 3, 130]
    cancelled: bool
    seconds: Annotated[float, Field(ge=0)]
    statuses: dict[Status, Count]
    over_all: Rate
    over_valid: Rate
    repeats: Repeats
    targets: dict[str, dict[MeasureName, Sighted]]
    opinions: Opinions = Field(default=_NO_OPINIONS)
    scenarios: list[Scenario]


def report_schema() -> dict[str, JSON]:
    """The schema of a report."""
    return Report.model_json_schema()
