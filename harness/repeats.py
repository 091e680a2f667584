"""What repeated trials say: pass^k, pass@k, standard errors and intervals (verdicts.md section 8).

Refuses to know scenarios: a task is how many of its trials counted, and how many of those passed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import NormalDist

LEVEL = 0.95
"""Confidence of every interval."""
RESAMPLES = 4000
SEED = 20260101
"""Of the bootstrap, so that equal results have equal intervals."""
FEW = 10
"""Tasks under which a bootstrap over them is rough."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Task:
    """One task: `trials` that count, `passed` of them, and `lost` ones that infrastructure took."""

    trials: int
    passed: int
    lost: int = 0


def pass_hat(tasks: Sequence[Task], k: int) -> float | None:
    """pass^k, the mean over tasks of C(c,k)/C(n,k): that k trials all pass. None when a task has fewer than k."""
    return _mean(hats(tasks, k))


def pass_at(tasks: Sequence[Task], k: int) -> float | None:
    """pass@k, the mean of 1 - C(n-c,k)/C(n,k): that one of k trials passes. None when a task has fewer than k."""
    return _mean(hats([Task(task.trials, task.trials - task.passed) for task in tasks], k), turned=True)


def hats(tasks: Sequence[Task], k: int) -> list[float] | None:
    """C(c,k)/C(n,k) of each task. None when one has fewer than k trials, and of no task."""
    if k < 1:
        raise ValueError("k counts trials, from 1")
    if not tasks or any(task.trials < k for task in tasks):
        return None
    return [math.comb(task.passed, k) / math.comb(task.trials, k) for task in tasks]


def _mean(values: Sequence[float] | None, *, turned: bool = False) -> float | None:
    if values is None:
        return None
    mean = sum(values) / len(values)
    return 1 - mean if turned else mean


def wilson(passed: float, trials: int) -> Interval | None:
    """Wilson's interval of a share, as if trials were independent (Wilson 1927). None of no trial."""
    if not trials:
        return None
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share = passed / trials
    middle = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # At either end the formula gives the end itself, which rounding may miss.
    return (
        0.0 if not passed else max(0.0, (middle - half) / scale),
        1.0 if passed == trials else min(1.0, (middle + half) / scale),
    )


def naive_error(tasks: Sequence[Task]) -> float | None:
    """The standard error of the share of passes as if trials were independent, with n - 1. None under two trials."""
    trials, passed = _totals(tasks)
    if trials < 2:
        return None
    share = passed / trials
    return math.sqrt(share * (1 - share) / (trials - 1))


def clustered_error(tasks: Sequence[Task]) -> float | None:
    """The standard error of the share of passes, clustered by task, with C/(C - 1). None under two tasks."""
    tasks = [task for task in tasks if task.trials]
    trials, passed = _totals(tasks)
    if len(tasks) < 2:
        return None
    share = passed / trials
    squares = sum((task.passed - share * task.trials) ** 2 for task in tasks)
    return math.sqrt(len(tasks) / (len(tasks) - 1) * squares) / trials


def bootstrap(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """The percentile interval of sum/sum over (numerator, denominator) pairs, one a task, drawn with replacement.

    Seeded. None under two tasks.
    """
    pairs = [pair for pair in pairs if pair[1]]
    if len(pairs) < 2:
        return None
    draw = Random(SEED)  # noqa: S311 - a resampling must repeat, and guards nothing
    values: list[float] = []
    for _ in range(RESAMPLES):
        drawn = draw.choices(pairs, k=len(pairs))
        values.append(sum(one for one, _ in drawn) / sum(other for _, other in drawn))
    return percentiles(values)


def rate_interval(tasks: Sequence[Task]) -> Interval | None:
    """The cluster bootstrap of the share of passes. None under two tasks."""
    return bootstrap([(task.passed, task.trials) for task in tasks])


def honest_interval(tasks: Sequence[Task]) -> Interval | None:
    """The interval of the share of passes over tasks that a report shows. None under two tasks.

    Where all tasks came out alike, every draw of the bootstrap is the same, which says nothing of other tasks: then it
    is Wilson's with a task for a trial.
    """
    found = rate_interval(tasks)
    if found is None or found[0] != found[1]:
        return found
    told = [task for task in tasks if task.trials]
    return wilson(found[0] * len(told), len(told))


def hat_interval(tasks: Sequence[Task], k: int) -> Interval | None:
    """The cluster bootstrap of pass^k. None under two tasks, and where pass^k is."""
    values = hats(tasks, k)
    return None if values is None else bootstrap([(value, 1.0) for value in values])


def percentiles(values: Sequence[float]) -> Interval:
    """The interval that holds the middle LEVEL of the values."""
    ordered = sorted(values)
    low = (1 - LEVEL) / 2
    return _quantile(ordered, low), _quantile(ordered, 1 - low)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def bounds(tasks: Sequence[Task]) -> Interval | None:
    """The share of passes were all lost trials failures, and were they all passes. None of no trial."""
    trials, passed = _totals(tasks)
    lost = sum(task.lost for task in tasks)
    return (passed / (trials + lost), (passed + lost) / (trials + lost)) if trials + lost else None


def share(tasks: Sequence[Task]) -> float | None:
    """Passes over the trials that count. None of no trial."""
    trials, passed = _totals(tasks)
    return passed / trials if trials else None


def _totals(tasks: Sequence[Task]) -> tuple[int, int]:
    return sum(task.trials for task in tasks), sum(task.passed for task in tasks)
