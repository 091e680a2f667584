"""The schema of report.json, which is also what `--format json` prints.

Refuses to know how any of it is found out; a test holds reports of real runs against it.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from harness.intake import Entry
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
    kept: str = ""


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
    scenarios: list[Scenario]


def report_schema() -> dict[str, JSON]:
    """The schema of a report."""
    return Report.model_json_schema()
