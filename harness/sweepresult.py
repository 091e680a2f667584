"""What a sweep came to: for each agent its rates, why it failed, what passing took, and who had the facts.

Refuses to know how trials are run and how this is shown.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from harness.measuring import Had, Measured
from harness.opinions import opinions_as_json
from harness.repeats import Interval, Task, honest_interval, wilson
from harness.report.repeated import repeats_as_json
from harness.results import Rate, TrialResult
from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial of a sweep: which agent did which task, the result, and its numbers where it left a trace."""

    arm: str
    task: str
    result: TrialResult
    measured: Measured

    @property
    def done(self) -> bool:
        """Whether it began: a limit or a person may have ended the sweep before."""
        return self.result.verdict.status != "cancelled"

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.result.verdict.result == "pass"

    @property
    def whole(self) -> bool:
        """Whether the agent came to an end of its own: neither incomplete, nor taken by infrastructure."""
        return self.result.valid and self.result.verdict.category != "incomplete"


@dataclass(frozen=True, slots=True)
class ArmResult:
    """All trials of one agent. Those that never began are counted in `not_done` and nowhere else."""

    name: str
    trials: tuple[Tried, ...]

    @property
    def done(self) -> tuple[Tried, ...]:
        """The trials that began."""
        return tuple(one for one in self.trials if one.done)

    @property
    def passing(self) -> tuple[Tried, ...]:
        """The trials that passed."""
        return tuple(one for one in self.done if one.passed)

    @property
    def not_done(self) -> int:
        """How many trials never began."""
        return len(self.trials) - len(self.done)

    @property
    def raw(self) -> Rate:
        """Passes over all trials that began."""
        return Rate(len(self.passing), len(self.done))

    @property
    def adjusted(self) -> Rate:
        """Passes over those in which the agent came to an end of its own."""
        return Rate(len(self.passing), sum(one.whole for one in self.done))

    @property
    def tasks(self) -> dict[str, tuple[Tried, ...]]:
        """The trials that began, by task."""
        names = dict.fromkeys(one.task for one in self.trials)
        return {name: tuple(one for one in self.done if one.task == name) for name in names}

    @property
    def counted(self) -> tuple[Task, ...]:
        """Its tasks for estimates over repeats: the trials that infrastructure took are apart."""
        valid = [[one for one in ones if one.result.valid] for ones in self.tasks.values()]
        return tuple(
            Task(len(good), sum(one.passed for one in good), len(ones) - len(good))
            for good, ones in zip(valid, self.tasks.values(), strict=True)
        )

    @property
    def clustered(self) -> Interval | None:
        """The share of valid trials that pass, at 95 %, over tasks: see honest_interval. None under two tasks."""
        return honest_interval(self.counted)

    @property
    def independent(self) -> Interval | None:
        """The same by Wilson, as if trials were independent; None of no trial."""
        return wilson(sum(task.passed for task in self.counted), sum(task.trials for task in self.counted))

    def mean(self, of: Callable[[Tried], float | None], *, passing: bool = True) -> float | None:
        """The mean of a number over the passing trials (or all that began); None where any of them has none."""
        return known_mean([of(one) for one in (self.passing if passing else self.done)])

    def total(self, of: Callable[[Measured], float | None]) -> float | None:
        """The sum of a number over the trials that began; None where any of them has none."""
        numbers = [of(one.measured) for one in self.done]
        known = [number for number in numbers if number is not None]
        return sum(known) if numbers and len(known) == len(numbers) else None

    @property
    def categories(self) -> Counter[str]:
        """How many of the trials that did not pass failed for which reason, and with which loss between agents."""
        found: Counter[str] = Counter()
        for one in self.done:
            verdict = one.result.verdict
            if not one.passed:
                category = verdict.category if verdict.category not in (None, "pass") else verdict.result
                found[f"{category} / {verdict.coordination}" if verdict.coordination else str(category)] += 1
        return found

    @property
    def facts(self) -> dict[tuple[str, str], tuple[Had, ...]]:
        """Of each task and fact, who had it in each trial."""
        found: dict[tuple[str, str], list[Had]] = {}
        for one in self.done:
            for had in one.measured.facts:
                found.setdefault((one.task, had.fact), []).append(had)
        return {key: tuple(ones) for key, ones in found.items()}

    def as_json(self) -> JSON:
        """The agent as it stands in sweep.json."""
        seconds = [one.result.seconds for one in self.done]
        return {
            "agent": self.name,
            "trials": len(self.trials),
            "not_done": self.not_done,
            "raw": self.raw.as_json(),
            "adjusted": self.adjusted.as_json(),
            "repeats": repeats_as_json(self.counted),
            "tasks": {
                name: {
                    **_map(Rate(sum(one.passed for one in ones), len(ones)).as_json()),
                    "wilson": _pair(wilson(sum(one.passed for one in ones), len(ones))),
                }
                for name, ones in self.tasks.items()
            },
            "failures": dict(self.categories.most_common()),
            **opinions_as_json([one.result.verdict for one in self.done]),
            "passing": {
                "trials": len(self.passing),
                "calls": self.mean(lambda one: one.measured.calls),
                "model_calls": self.mean(lambda one: one.measured.model_calls),
                "tokens": self.mean(lambda one: one.measured.tokens),
                "cost": self.mean(lambda one: one.measured.cost),
                "seconds": self.mean(lambda one: one.result.seconds),
            },
            "tokens": {
                "in": self.total(lambda one: one.tokens_in),
                "cached": self.total(lambda one: one.tokens_cached),
                "out": self.total(lambda one: one.tokens_out),
            },
            "cost": self.total(lambda one: one.cost),
            "seconds": {
                "median": median(seconds) if seconds else None,
                "most": max(seconds, default=None),
            },
            "facts": [
                {
                    "task": task,
                    "fact": fact,
                    "trials": len(ones),
                    "read": sum(bool(had.readers) for had in ones),
                    "decider_knew": sum(had.decider_knew is True for had in ones),
                    "decider_did_not": sum(had.decider_knew is False for had in ones),
                    "knowers": dict(Counter(name for had in ones for name in had.knowers)),
                }
                for (task, fact), ones in self.facts.items()
            ],
        }


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A whole sweep. `stopped` says why it ended before all trials had begun, None where it did not."""

    run_id: str
    arms: tuple[ArmResult, ...]
    stopped: str | None = None
    cancelled: bool = False

    @property
    def exit_code(self) -> int:
        """130 cancelled, 3 no valid trial, 1 stopped by a limit, 0 all trials have a result."""
        if self.cancelled:
            return 130
        if not any(one.result.valid for arm in self.arms for one in arm.trials):
            return 3
        return 0 if self.stopped is None else 1

    def as_json(self) -> JSON:
        """The sweep as it stands in sweep.json."""
        return {
            "schema_version": 1,
            "run_id": self.run_id,
            "stopped": self.stopped,
            "cancelled": self.cancelled,
            "agents": [arm.as_json() for arm in self.arms],
        }


def known_mean(numbers: Sequence[float | None]) -> float | None:
    """The mean; None of nothing, and where any number is not known."""
    known = [number for number in numbers if number is not None]
    return fmean(known) if known and len(known) == len(numbers) else None


def _pair(interval: Interval | None) -> JSON:
    return None if interval is None else [*interval]


def _map(value: JSON) -> dict[str, JSON]:
    assert isinstance(value, dict)
    return value
