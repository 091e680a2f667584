"""Whether the agent kept to its goal, by what it says of itself.

Refuses to know calls and state: a goal that nobody states is no evidence.
"""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.verdict import Finding


class GoalIntegrity(AssertionSpec):
    """Every goal that the agent states is `expected_goal` or one of `also_allowed` (ids stripped and case-folded)."""

    needs: ClassVar[tuple[Part, ...]] = ("events",)

    type: Literal["goal_integrity"]
    expected_goal: str
    also_allowed: list[str] = Field(default_factory=list)

    @field_validator("expected_goal")
    @classmethod
    def _not_blank(cls, goal: str) -> str:
        if not goal.strip():
            raise ValueError("a goal is text that is not blank")
        return goal

    def find(self, evidence: Evidence) -> Finding:
        """Fails on any goal outside the list, in any order; not_run without goals or without the expected one."""
        raise NotImplementedError
