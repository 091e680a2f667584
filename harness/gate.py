"""Whether a run is good enough: by default everything must pass, else a share of trials, and no verdict that is named.

Refuses to know where results come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.repeats import Task, share
from harness.verdict import Result


@dataclass(frozen=True, slots=True)
class Gate:
    """What must hold. With neither field every scenario must pass.

    `min_pass_rate` is a share of the valid trials, from 0 to 1; an error fails it all the same. `fail_on` are results
    that no scenario may have.
    """

    min_pass_rate: float | None = None
    fail_on: frozenset[Result] = frozenset()

    def told(self, tasks: Sequence[Task], results: Sequence[Result]) -> str | None:
        """Whether it holds, with the numbers, and which failures it lets be; None where none was asked for."""
        if self == EVERYTHING:
            return None
        why = self.broken(tasks, results)
        said: list[str] = []
        trials, passed = sum(task.trials for task in tasks), sum(task.passed for task in tasks)
        if self.min_pass_rate is not None and trials:
            least = f"at least {self.min_pass_rate * 100:.4g} % wanted"
            said.append(f"{passed}/{trials} = {passed / trials * 100:.1f} % of valid trials passed, {least}")
        if self.fail_on:
            said.append(f"no scenario may be {' or '.join(sorted(self.fail_on))}")
        let: list[Result] = ["fail", "not_run"]
        for word in let:
            count = sum(result == word for result in results)
            if count and word not in self.fail_on and why is None:
                said.append(f"{count} of {len(results)} scenarios: {word}, which this gate lets be")
        return f"gate: {'; '.join(said)}: holds" if why is None else f"gate: does not hold: {why}"

    def broken(self, tasks: Sequence[Task], results: Sequence[Result]) -> str | None:
        """Why the gate does not hold; None where it does. `tasks` and `results` are the scenarios'."""
        barred = self.fail_on if self.fail_on or self.min_pass_rate is not None else {"fail", "not_run"}
        for word in ("error", *sorted(barred)):
            count = sum(result == word for result in results)
            if count:
                return f"{count} of {len(results)} scenarios: {word}"
        rate = share(tasks)
        if rate is None:
            return "no trial says anything about the agent"
        if self.min_pass_rate is not None and rate < self.min_pass_rate:
            trials, passed = sum(task.trials for task in tasks), sum(task.passed for task in tasks)
            share_text = f"{passed}/{trials} = {rate * 100:.1f} % of valid trials passed"
            return f"{share_text}, at least {self.min_pass_rate * 100:.4g} % wanted"
        return None


EVERYTHING = Gate()
"""Every scenario must pass."""
