"""Repeated trials in a line of text: pass^k, pass@k and an interval, for one scenario or over several.

Refuses to know formulas; `harness.repeats` has them.
"""

from collections.abc import Callable, Sequence

from harness.repeats import FEW, Interval, Task, honest_interval, pass_at, pass_hat, wilson

ALL_OF = 4
"""Trials up to which every k is shown; beyond, the powers of 2 and the last."""
NONE = "-"
"""What is shown where nothing can be said."""


def shown_ks(tasks: Sequence[Task]) -> list[int]:
    """The k that are shown: no larger than the trials of any task, since further ones are null."""
    longest = min((task.trials for task in tasks), default=0)
    return [k for k in range(1, longest + 1) if k <= ALL_OF or k == longest or k & (k - 1) == 0]


def number(value: float | None) -> str:
    """To four digits, as people write them."""
    return NONE if value is None else f"{value:.4g}"


def hats_text(tasks: Sequence[Task]) -> str:
    """`1: 0.5, 2: 0.1667`, the pass^k."""
    return _each(tasks, pass_hat)


def ats_text(tasks: Sequence[Task]) -> str:
    """The same of pass@k."""
    return _each(tasks, pass_at)


def _each(tasks: Sequence[Task], estimate: Callable[[Sequence[Task], int], float | None]) -> str:
    return ", ".join(f"{k}: {number(estimate(tasks, k))}" for k in shown_ks(tasks)) or NONE


def interval_text(tasks: Sequence[Task]) -> str:
    """The 95 % interval of the share of passes, and what it assumes.

    Of several scenarios it is the bootstrap over them, or Wilson's with a scenario for a trial where all came out
    alike; of one it is Wilson's (verdicts.md section 8).
    """
    told = [task for task in tasks if task.trials]
    if len(told) > 1:
        rough = ", rough" if len(tasks) < FEW else ""
        return f"{_range(honest_interval(tasks))} (over scenarios{rough})"
    trials, passed = sum(task.trials for task in told), sum(task.passed for task in told)
    return f"{_range(wilson(passed, trials))} (if trials were independent)" if trials else NONE


def _range(interval: Interval | None) -> str:
    return NONE if interval is None else f"{number(interval[0])} to {number(interval[1])}"


def estimates_text(tasks: Sequence[Task]) -> str:
    """All of it in one line: `pass^k 1: 0.5; pass@k 1: 0.5; 95 % of passing 0.15 to 0.85 (if …)`."""
    hats, ats, interval = hats_text(tasks), ats_text(tasks), interval_text(tasks)
    if hats == NONE and tasks:
        hats = f"{NONE} (a scenario has no valid trial)"
    return f"pass^k {hats}; pass@k {ats}; 95 % of passing {interval}"
