"""What every assertion is: a strict frozen model that says which parts of the evidence it needs, and judges them.

Refuses to know any one assertion.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from harness.evidence import Evidence
from harness.outcomes import is_blocked, is_executed
from harness.trace import Coverage, Source, ToolCall
from harness.verdict import Finding, Rests, Result

Part: TypeAlias = Literal["messages", "tool_calls", "results", "events", "state"]
"""A part of the trace's coverage, by its name there."""


class AssertionSpec(BaseModel, ABC):
    """One assertion of a scenario. `id` names its finding; without one the finding has the assertion's `type`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    needs: ClassVar[tuple[Part, ...]]
    """The parts of the evidence without which nothing can be said."""
    fails_first: ClassVar[bool] = False
    """Whether what is there may fail though another part is missing: then only a pass needs all parts."""

    type: str
    id: str | None = Field(default=None, min_length=1)

    @property
    def name(self) -> str:
        """The id of the finding."""
        return self.id or self.type

    def judge(self, evidence: Evidence) -> Finding:
        """What the evidence says; not_run, naming the part, when a part that is needed comes from nowhere."""
        missing = [part for part in self.needs if source(evidence.trace.coverage, part) == "none"]
        if missing:
            told = self.find(evidence) if self.fails_first else None
            if told is not None and told.result in ("fail", "error"):
                return told
            return self.not_run(_unknown(missing, evidence))
        return self.find(evidence)

    @abstractmethod
    def find(self, evidence: Evidence) -> Finding:
        """What the evidence says, given that each part in `needs` comes from somewhere."""

    def about(
        self,
        calls: Collection[ToolCall],
        result: Result,
        reason: str,
        rests: Rests,
        measures: dict[str, float | None] | None = None,
    ) -> Finding:
        """A finding about these calls, counted by how far they came."""
        return Finding(
            self.name,
            result,
            reason,
            rests,
            attempted=len(calls),
            blocked=sum(map(is_blocked, calls)),
            executed=sum(map(is_executed, calls)),
            measures=measures,
        )

    def not_run(self, reason: str) -> Finding:
        """A finding that nothing can be said."""
        return Finding(self.name, "not_run", reason)

    def error(self, reason: str) -> Finding:
        """A finding that the scenario's own text is at fault."""
        return Finding(self.name, "error", reason)


def source(coverage: Coverage, part: Part) -> Source:
    """Where a part of the evidence comes from."""
    match part:
        case "messages":
            return coverage.messages
        case "tool_calls":
            return coverage.tool_calls
        case "results":
            return coverage.results
        case "events":
            return coverage.events
        case "state":
            return coverage.state


def _unknown(missing: list[Part], evidence: Evidence) -> str:
    """Why nothing is known of these parts, in the same words for each assertion that needs any of them."""
    coverage = evidence.trace.coverage
    wire: tuple[Part, ...] = ("tool_calls", "results", "events")
    if not evidence.recorded and coverage.tool_calls == "none" and set(missing) & set(wire):
        none = ", ".join(part for part in wire if source(coverage, part) == "none")
        hint = f"; {evidence.unpointed}" if evidence.unpointed else ""
        return f"the agent never spoke to a server through the proxy: coverage is none of {none}{hint}"
    if not evidence.recorded and missing == ["state"]:
        if evidence.unpointed:
            return f"nothing is known of the state of any server: {evidence.unpointed}: coverage is none of state"
        return "nothing is known of the state of any server, since only that of fixtures is: coverage is none of state"
    return f"nothing is known of {' and '.join(missing)}: coverage is none"
