"""A rubric that a model judges: its opinion, which stands beside the verdict and never makes it.

Refuses to know models: the opinion is among the evidence, or there is none.
"""

from typing import ClassVar, Literal

from pydantic import Field

from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.verdict import Finding, Result


class Judged(AssertionSpec):
    """By the task, the final answer and the tool results, a model finds that the rubric is met."""

    needs: ClassVar[tuple[Part, ...]] = ("messages",)

    type: Literal["judged"]
    rubric: str = Field(min_length=1)

    def find(self, evidence: Evidence) -> Finding:
        """The opinion; not_run where no judge was asked, and where it gave none (judge_failed)."""
        opinion = evidence.opinions.get(self.rubric)
        if opinion is None:
            return self.not_run("no judge was asked; --judge names one")
        result: Result = "not_run" if opinion.success is None else "pass" if opinion.success == 1 else "fail"
        said = f"judge_failed: {opinion.reasoning}" if opinion.failed else opinion.reasoning
        return Finding(self.name, result, f"{opinion.judge}: {said}", "opinion", opinion=opinion)


class Rubric(Judged):
    """The rubric among a scenario's labels: a signal where a judge has an opinion on it, and else nothing at all."""
