"""Whether one tool was called, with certain arguments, and how often.

Refuses to know the order of calls and other calls than the one it names.
"""

from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field, JsonValue, field_validator, model_validator

from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.verdict import Finding

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
        """Passes on `min` to `max` calls that count; not_run where the calls that may be missing decide."""
        raise NotImplementedError


class ToolNotCalled(_OneTool):
    """`tool` was never called with `arguments` as a subset of the call's, by any name shape, case-folded."""

    type: Literal["tool_not_called"]
    counts: Counts = "attempted"

    def find(self, evidence: Evidence) -> Finding:
        """Fails on a call that counts; not_run where absence is no evidence."""
        raise NotImplementedError
