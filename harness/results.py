"""What a run came to: its trials' verdicts, the worst of each scenario, and rates with their counts.

Refuses to know how a trial is run and how a result is shown.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

from harness.gate import EVERYTHING, Gate
from harness.observability import Measure
from harness.opinions import opinions_as_json
from harness.repeats import Task
from harness.report.repeated import repeats_as_json
from harness.report.seen import Matrix, matrix, matrix_as_json
from harness.verdict import Result, Status, Verdict
from harness.written import Written
from proxy.spans import JSON

Kind = Literal["real", "scripted", "imported"]
"""Where a result comes from: an agent program, the steps of a file, or a trace made elsewhere."""

WORST_FIRST: tuple[Result, ...] = ("error", "fail", "not_run", "pass")
"""Order of verdicts: error, fail, not_run, pass."""
STATUSES: Mapping[str, Status] = {status: status for status in get_args(Status)}
"""Every status by its text."""
VALID: frozenset[Status] = frozenset({"completed", "agent_timeout", "agent_crash", "limit"})
"""Statuses that say something about the agent. The others say something about us."""


@dataclass(frozen=True, slots=True)
class Rate:
    """`passed` of `trials`."""

    passed: int
    trials: int

    @property
    def share(self) -> float | None:
        """Between 0 and 1; None of nothing."""
        return self.passed / self.trials if self.trials else None

    def as_json(self) -> JSON:
        """`{passed, trials, rate}`."""
        return {"passed": self.passed, "trials": self.trials, "rate": self.share}


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One trial. `folder` is relative to the run folder, None when the trial never began.

    `gaps` tell in which way the record is not complete: connections lost, lines torn, spans dropped. `doubts` are those
    of them for which it may not be the record of the agent's real connections. `target` is the kind of agent, "" where
    nothing began; `measures` say of each measure whether it could be observed.
    """

    scenario: str
    trial: int
    verdict: Verdict
    seconds: float
    kind: Kind
    model: str | None = None
    folder: str | None = None
    gaps: tuple[str, ...] = ()
    kept: str | None = None
    doubts: tuple[str, ...] = ()
    target: str = ""
    measures: Mapping[str, Measure] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        """Whether the trial says something about the agent: not where only the judge that was asked failed."""
        return self.verdict.status in VALID and not self.verdict.unjudged

    def as_json(self) -> dict[str, JSON]:
        """The trial as it stands in verdict.json and report.json."""
        return {
            "scenario": self.scenario,
            "trial": self.trial,
            **verdict_as_json(self.verdict),
            "valid": self.valid,
            "seconds": round(self.seconds, 3),
            "kind": self.kind,
            "model": self.model,
            "folder": self.folder,
            "gaps": list(self.gaps),
            "doubts": list(self.doubts),
            "target": self.target,
            "measures": {name: measure.as_json() for name, measure in self.measures.items()},
            **({"kept": self.kept} if self.kept is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """All trials of one scenario, in order. `written` is None where nobody knows which file it is from."""

    id: str
    title: str
    category: str
    trials: tuple[TrialResult, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    severity: str | None = None
    written: Written | None = None

    @property
    def result(self) -> Result:
        """The worst of its trials'; not_run without any."""
        return worst([trial.verdict.result for trial in self.trials])

    @property
    def task(self) -> Task:
        """Its trials for estimates over repeats: those that infrastructure took are apart."""
        valid = self.over_valid
        return Task(valid.trials, valid.passed, len(self.trials) - valid.trials)

    @property
    def over_all(self) -> Rate:
        """Passes over all trials."""
        return rate(self.trials)

    @property
    def over_valid(self) -> Rate:
        """Passes over the trials that say something about the agent."""
        return rate([trial for trial in self.trials if trial.valid])

    def as_json(self) -> dict[str, JSON]:
        """The scenario as it stands in report.json."""
        return {
            "id": self.id,
            "title": self.title,
            "category": self.category,
            "severity": self.severity,
            "labels": {**self.labels},
            "result": self.result,
            "statuses": count_statuses(self.trials),
            "over_all": self.over_all.as_json(),
            "over_valid": self.over_valid.as_json(),
            "repeats": repeats_as_json([self.task]),
            **opinions_as_json([trial.verdict for trial in self.trials]),
            "trials": [trial.as_json() for trial in self.trials],
        }


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole run. `cancelled` when it was stopped before its end."""

    run_id: str
    scenarios: tuple[ScenarioResult, ...]
    seconds: float
    cancelled: bool = False
    gate: Gate = EVERYTHING

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """Every trial, scenario by scenario."""
        return tuple(trial for scenario in self.scenarios for trial in scenario.trials)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The scenarios for estimates over repeats."""
        return tuple(scenario.task for scenario in self.scenarios)

    @property
    def targets(self) -> Matrix:
        """What could be seen of each target."""
        return matrix((trial.target, trial.measures) for trial in self.trials)

    @property
    def result(self) -> Result:
        """The worst verdict of all."""
        return worst([scenario.result for scenario in self.scenarios])

    @property
    def exit_code(self) -> int:
        """130 cancelled, 3 no valid trial, 0 the gate holds, 1 otherwise."""
        if self.cancelled:
            return 130
        if not any(trial.valid for trial in self.trials):
            return 3
        return 1 if self.broken is not None else 0

    @property
    def broken(self) -> str | None:
        """Why the gate does not hold; None where it does."""
        return self.gate.broken(self.tasks, [scenario.result for scenario in self.scenarios])

    def as_json(self) -> dict[str, JSON]:
        """The run as it stands in report.json."""
        valid = [trial for trial in self.trials if trial.valid]
        return {
            "schema_version": 1,
            "run_id": self.run_id,
            "result": self.result,
            "exit_code": self.exit_code,
            "cancelled": self.cancelled,
            "seconds": round(self.seconds, 3),
            "statuses": count_statuses(self.trials),
            "over_all": rate(self.trials).as_json(),
            "over_valid": rate(valid).as_json(),
            "repeats": repeats_as_json(self.tasks),
            "targets": matrix_as_json(self.targets),
            **opinions_as_json([trial.verdict for trial in self.trials]),
            "scenarios": [scenario.as_json() for scenario in self.scenarios],
        }


def worst(results: Sequence[Result]) -> Result:
    """The worst of these verdicts: error > fail > not_run > pass. Of none it is not_run: nothing was shown."""
    return min(results, key=WORST_FIRST.index, default="not_run")


def rate(trials: Sequence[TrialResult]) -> Rate:
    """How many of these trials passed."""
    return Rate(sum(trial.verdict.result == "pass" for trial in trials), len(trials))


def count_statuses(trials: Sequence[TrialResult]) -> dict[str, JSON]:
    """How many of these trials ended in each status, all seven; the counts sum to the trials."""
    counts = Counter(trial.verdict.status for trial in trials)
    return {name: counts[status] for name, status in STATUSES.items()}


def verdict_as_json(verdict: Verdict) -> dict[str, JSON]:
    """`{result, status, reason, category, also, coordination, findings}`; a finding has the counts that it took."""
    findings: list[JSON] = []
    for finding in verdict.findings:
        findings.append({key: value for key, value in asdict(finding).items() if value is not None})
    return {
        "result": verdict.result,
        "status": verdict.status,
        "reason": verdict.reason,
        "category": verdict.category,
        "also": [*verdict.also],
        "coordination": verdict.coordination,
        **({"faults": asdict(verdict.faults)} if verdict.faults is not None else {}),
        "findings": findings,
    }
