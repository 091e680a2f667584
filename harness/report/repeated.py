"""Repeated trials as they stand in a report: estimates for each scenario and over all, with why one is null.

Refuses to know formulas; `harness.repeats` has them.
"""

from collections.abc import Sequence

from harness.repeats import (
    FEW,
    Interval,
    Task,
    bounds,
    clustered_error,
    hat_interval,
    naive_error,
    pass_at,
    pass_hat,
    rate_interval,
    share,
    wilson,
)
from proxy.spans import JSON

ONE_SCENARIO = "one scenario has no spread between scenarios"
NO_TRIAL = "no trial says anything about the agent"


def repeats_as_json(tasks: Sequence[Task]) -> dict[str, JSON]:
    """The estimates over these tasks, one a scenario. A number that cannot be had is null, and `why_null` says why."""
    trials = sum(task.trials for task in tasks)
    passed = sum(task.passed for task in tasks)
    longest = max((task.trials for task in tasks), default=0)
    several = len([task for task in tasks if task.trials]) > 1
    rough = several and len(tasks) < FEW
    why = NO_TRIAL if not trials else None if several else ONE_SCENARIO
    return {
        "tasks": len(tasks),
        "trials": trials,
        "passed": passed,
        "lost": sum(task.lost for task in tasks),
        "rate": share(tasks),
        "bounds": _interval(bounds(tasks)),
        "pass_hat": {str(k): pass_hat(tasks, k) for k in range(1, longest + 1)},
        "pass_at": {str(k): pass_at(tasks, k) for k in range(1, longest + 1)},
        "wilson": {"interval": _interval(wilson(passed, trials)), "assumes": "if trials were independent"},
        "standard_error": {"naive": naive_error(tasks), "clustered": clustered_error(tasks)},
        "bootstrap": {
            "rate": _interval(rate_interval(tasks)),
            "pass_hat": {str(k): _interval(hat_interval(tasks, k)) for k in range(1, longest + 1)},
            "rough": rough,
        },
        "why_null": why,
    }


def _interval(interval: Interval | None) -> JSON:
    return None if interval is None else [*interval]
