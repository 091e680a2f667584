"""Whether one tool was called, with certain arguments, and how often.

Refuses to know the order of calls and other calls than the one it names.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field, JsonValue, field_validator, model_validator

from harness.assertions.absence import doubt
from harness.assertions.arguments import Held, holds
from harness.assertions.names import is_certain, is_meant, shapes
from harness.assertions.offered import not_offered
from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.outcomes import describe, is_executed, is_ok, listed, outcome_words, show, times
from harness.trace import ToolCall
from harness.verdict import Finding, Result

Counts: TypeAlias = Literal["attempted", "executed", "ok"]
"""Which calls count: every one; those forwarded and not answered by a protocol error; those with outcome ok."""


class _OneTool(AssertionSpec):
    needs: ClassVar[tuple[Part, ...]] = ("tool_calls",)

    tool: str
    arguments: dict[str, JsonValue] | None = None

    @field_validator("tool")
    @classmethod
    def _not_blank(cls, tool: str) -> str:
        if not tool.strip():
            raise ValueError("a tool is a name that is not blank, such as mcp/crm/get_customer_profile")
        return tool

    @property
    def _wanted(self) -> str:
        return self.tool if self.arguments is None else f"{self.tool} with {show(self.arguments)}"

    def found(self, evidence: Evidence, result: Result, reason: str, calls: Sequence[ToolCall]) -> Finding:
        """A finding about calls: those that fit by name and arguments, counted by how far they came."""
        return self.about(calls, result, reason, evidence.trace.coverage.tool_calls)


def does_count(call: ToolCall, counts: Counts) -> bool:
    """Whether a call counts as attempted, executed or ok."""
    match counts:
        case "attempted":
            return True
        case "executed":
            return is_executed(call)
        case "ok":
            return is_ok(call)


class ToolCalled(_OneTool):
    """`tool` was called at least `min` and at most `max` times, with `arguments` as a subset of the call's.

    `tool` is canonical (`mcp/<server>/<tool>`) or bare, which is that tool on any server; exact case.
    """

    type: Literal["tool_called"]
    min: int = Field(default=1, ge=0)
    max: int | None = Field(default=None, ge=1)
    counts: Counts = "ok"

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        if self.min == 0 and self.max is None:
            raise ValueError("min: 0 without max can never fail; give a max, or use tool_not_called")
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max: {self.max} is below min: {self.min}")
        return self

    def find(self, evidence: Evidence) -> Finding:
        """Passes on `min` to `max` calls that count; not_run where calls that are cut or not recorded could decide."""
        judged = [(call, self._fits(call)) for call in evidence.trace.tool_calls]
        certain = [call for call, fit in judged if fit == "yes"]
        counted = [call for call in certain if does_count(call, self.counts)]
        unsure = [call for call, fit in judged if fit == "unknown" and does_count(call, self.counts)]
        low, high = len(counted), len(counted) + len(unsure)
        wanted = self._wanted
        if self.max is not None and low > self.max:
            return self.found(
                evidence,
                "fail",
                f"{wanted} counted {times(low)}, at most {self.max} wanted; "
                f"first past it {describe(counted[self.max])}",
                certain,
            )
        doubted = doubt(evidence)
        if high < self.min:
            if doubted is not None:
                return self.not_run(
                    f"{wanted} counted {low} of {times(self.min)}, and more may have happened: {doubted}"
                )
            near = [call for call in certain if not does_count(call, self.counts)]
            other = [call for call, fit in judged if fit == "no" and is_certain(self.tool, call) != "no"]
            reasons = [f"{describe(call)} was {outcome_words(call)}" for call in near]
            reasons += [f"{describe(call)} has other arguments" for call in other]
            tail = f": {listed(reasons)}" if reasons else ""
            return self.found(evidence, "fail", f"{wanted} counted {times(low)}, {self.min} wanted{tail}", certain)
        if low < self.min or (self.max is not None and high > self.max):
            return self.not_run(
                f"{wanted}: it cannot be told whether {describe(unsure[0])} is one "
                "(its server or its arguments are not recorded whole)"
            )
        if self.max is not None and doubted is not None:
            return self.not_run(f"{wanted} counted {times(low)}, and more may have happened: {doubted}")
        absent = None if certain else not_offered(self.tool, evidence)
        if absent is not None:
            return self.not_run(f"{wanted} was never called, but that is no evidence: {absent}")
        first = f", first {describe(counted[0])}" if counted else ""
        return self.found(evidence, "pass", f"{wanted} counted {times(low)}{first}", certain)

    def _fits(self, call: ToolCall) -> Literal["yes", "no", "unknown"]:
        named = is_certain(self.tool, call)
        held: Held = "no" if named == "no" else holds(call, self.arguments)
        if held == "no":
            return "no"
        return "yes" if named == held == "yes" else "unknown"


class ToolNotCalled(_OneTool):
    """`tool` was never called with `arguments` as a subset of the call's, by any name shape, case-folded."""

    type: Literal["tool_not_called"]
    counts: Counts = "attempted"

    def find(self, evidence: Evidence) -> Finding:
        """Fails on a call that counts, blocked or not by default; not_run where absence is no evidence."""
        calls = evidence.trace.tool_calls
        named = [call for call in calls if is_meant(self.tool, call)]
        fitting = [call for call in named if holds(call, self.arguments) in ("yes", "either")]
        counted = [call for call in fitting if does_count(call, self.counts)]
        if counted:
            reasons = [f"{describe(call)} was {outcome_words(call)}" for call in counted]
            return self.found(evidence, "fail", listed(reasons), fitting)
        unsure = [call for call in named if holds(call, self.arguments) == "unknown" and does_count(call, self.counts)]
        if unsure:
            return self.not_run(f"the arguments of {describe(unsure[0])} are cut in the record")
        nameless = [call for call in calls if not shapes(call) and does_count(call, self.counts)]
        if nameless:
            return self.not_run(f"{describe(nameless[0])} may be a call of {self.tool}")
        doubted = doubt(evidence)
        if doubted is not None:
            return self.not_run(f"no call of {self._wanted} is recorded, but that is no evidence: {doubted}")
        absent = None if named else not_offered(self.tool, evidence)
        if absent is not None:
            return self.not_run(f"{self._wanted} was never called, but that is no evidence: {absent}")
        return self.found(evidence, "pass", f"{self._wanted} was never {self._verb}", fitting)

    @property
    def _verb(self) -> str:
        return "called" if self.counts == "attempted" else self.counts
