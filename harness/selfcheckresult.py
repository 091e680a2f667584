"""What a self-check came to: what became of each mutant, and which assertions nothing ever broke.

Refuses to know how mutants are run and how results are shown.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from harness.mutants import Mutant
from harness.results import worst
from harness.verdict import Result
from proxy.spans import JSON

Fate: TypeAlias = Literal["caught", "survived", "equivalent", "error"]
"""caught: no pass. equivalent: it left what the reference leaves, but for a step that is optional. error: a fault of
the scenario or of the machinery, which says nothing."""


@dataclass(frozen=True, slots=True)
class MutantResult:
    """`result` and `reason` are those of its verdict."""

    mutant: Mutant
    fate: Fate
    result: Result
    reason: str

    def as_json(self) -> dict[str, JSON]:
        """The mutant as `--json` shows it; `step` counts from 1."""
        step = self.mutant.step
        return {
            "kind": self.mutant.kind,
            "what": self.mutant.what,
            "step": None if step is None else step + 1,
            "fate": self.fate,
            "result": self.result,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Unbroken:
    """An assertion that held in every mutant. `counts` is false where no mutant could be made to break it, or where
    somebody said that it may hold, `meant`."""

    id: str
    counts: bool
    meant: bool = False


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The self-check of one scenario. `problem` says why there are no mutants, empty where there are."""

    scenario: str
    path: str
    result: Result
    problem: str = ""
    mutants: tuple[MutantResult, ...] = ()
    unbroken: tuple[Unbroken, ...] = ()

    def because(self, problem: str, result: Result) -> "SelfCheck":
        """One that ends before its mutants."""
        return replace(self, result=result, problem=problem)

    def with_mutants(self, found: Sequence[MutantResult], unbroken: tuple[Unbroken, ...]) -> "SelfCheck":
        """One with mutants: it passes when none survived and every assertion that can be broken was."""
        fates = {one.fate for one in found}
        idle = any(one.counts for one in unbroken)
        result: Result = "error" if "error" in fates else "fail" if "survived" in fates or idle else "pass"
        return replace(self, result=result, mutants=tuple(found), unbroken=unbroken)

    def count(self, fate: Fate) -> int:
        """How many mutants came to this."""
        return Counter(one.fate for one in self.mutants)[fate]

    def as_json(self) -> dict[str, JSON]:
        """The self-check as `--json` shows it; `share` is caught of all that are not equivalent, null of none."""
        counted = len(self.mutants) - self.count("equivalent")
        return {
            "scenario": self.scenario,
            "path": self.path,
            "result": self.result,
            "problem": self.problem or None,
            "caught": self.count("caught"),
            "survived": self.count("survived"),
            "equivalent": self.count("equivalent"),
            "share": self.count("caught") / counted if counted else None,
            "mutants": [one.as_json() for one in self.mutants],
            "unbroken": [{"id": one.id, "counts": one.counts, "meant": one.meant} for one in self.unbroken],
        }


def exit_code(checks: Sequence[SelfCheck]) -> int:
    """0 when all pass, 3 when none could be checked, 1 otherwise."""
    if all(check.result in ("not_run", "error") and not check.mutants for check in checks):
        return 3
    return 0 if worst([check.result for check in checks]) == "pass" else 1
