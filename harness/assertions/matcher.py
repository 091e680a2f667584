"""Whether the calls of a trial are the expected ones: which, how often, and in which order.

Refuses to know why they were made and what they changed.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue, field_validator, model_validator

from harness.assertions.absence import doubt
from harness.assertions.calls import Counts, does_count
from harness.assertions.fitting import Compare, arguments_fit, check_expected, check_schema
from harness.assertions.names import is_certain, shapes
from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.matching import Interval, SearchError, in_order, largest
from harness.outcomes import describe, listed, outcome_words, show
from harness.trace import ToolCall
from harness.verdict import Finding

Mode: TypeAlias = Literal["exact", "in_order", "any_order", "superset", "subset", "any_of"]
_WHOLE: frozenset[Mode] = frozenset({"exact", "any_order", "subset"})
"""Modes in which every call must have been expected."""


class ExpectedCall(BaseModel):
    """One expected call. Without `arguments` and `schema` any arguments fit; both must fit where both are there."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=())

    tool: str
    arguments: dict[str, JsonValue] | None = None
    json_schema: dict[str, JsonValue] | None = None
    compare: Compare | None = None
    ignore_case: bool = False

    @field_validator("tool")
    @classmethod
    def _not_blank(cls, tool: str) -> str:
        if not tool.strip():
            raise ValueError("a tool is a name that is not blank, such as mcp/crm/get_customer_profile")
        return tool

    @field_validator("arguments")
    @classmethod
    def _matchers(cls, arguments: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        check_expected(arguments)
        return arguments

    @field_validator("json_schema")
    @classmethod
    def _schema(cls, schema: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        if schema is not None:
            check_schema(schema)
        return schema

    @property
    def words(self) -> str:
        """The expected call in a reason."""
        return self.tool if self.arguments is None else f"{self.tool} {show(self.arguments)}"

    def fit(self, call: ToolCall, compare: Compare) -> Literal["yes", "no", "unknown"]:
        """Whether a call is this one."""
        named = self._names(call)
        if named == "no":
            return "no"
        held = arguments_fit(call, self.arguments, self.json_schema, self.compare or compare)
        if held == "no":
            return "no"
        return "yes" if named == held == "yes" else "unknown"

    def _names(self, call: ToolCall) -> Literal["yes", "no", "unknown"]:
        if not self.ignore_case:
            return is_certain(self.tool, call)
        wanted = self.tool.strip().casefold()
        found = {shape.tool.strip().casefold() for shape in shapes(call)}
        return "yes" if found == {wanted} else is_certain(self.tool, call)


class ToolCalls(AssertionSpec):
    """The calls that count are the `expected` ones, by `mode`; calls that overlap in time have no order.

    exact: the same calls in the same order. in_order: the expected ones in order, others between them. any_order: the
    same calls. superset: all expected ones, and others. subset: only expected ones. any_of: at least one of them.
    """

    needs: ClassVar[tuple[Part, ...]] = ("tool_calls",)

    type: Literal["tool_calls"]
    mode: Mode
    expected: list[ExpectedCall] | None = None
    compare: Compare = "equal"
    counts: Counts = "ok"

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        if self.expected == [] and self.mode not in _WHOLE:
            can = "never hold" if self.mode == "any_of" else "never fail"
            raise ValueError(f"expected: [] with mode: {self.mode} can {can}; mode: exact is that there are no calls")
        return self

    def find(self, evidence: Evidence) -> Finding:
        """Passes when the calls are as expected, with precision, recall and F1 of the largest assignment.

        A call that does not count and is none of the expected ones is one too many all the same.
        """
        if self.expected is None:
            return self.not_run("no expected calls are given; write expected: [] where there must be none")
        wanted = self.expected
        calls = evidence.trace.tool_calls
        fit = [[item.fit(call, self.compare) for call in calls] for item in wanted]
        counted = [
            other
            for other, call in enumerate(calls)
            if does_count(call, self.counts) or not any(row[other] != "no" for row in fit)
        ]
        if self.mode not in _WHOLE:
            counted = [other for other in counted if does_count(calls[other], self.counts)]

        def fitting(*words: str) -> list[list[int]]:
            return [[place for place, other in enumerate(counted) if row[other] in words] for row in fit]

        sure, hopeful = fitting("yes"), fitting("yes", "unknown")
        seen = [calls[other] for other in counted]
        try:
            best, worst = self._holds(hopeful, seen), self._holds(sure, seen)
        except SearchError as error:
            return self.not_run(str(error))
        assigned = largest(sure)
        measures = scores(sum(place is not None for place in assigned), len(wanted), len(seen))
        if best and not worst:
            return self.not_run("it cannot be told whether a call is an expected one: the record of it is not whole")
        doubted = doubt(evidence)
        if not best:
            more = self.mode in ("in_order", "superset", "any_of") or len(seen) < len(wanted)
            if more and doubted is not None:
                return self.not_run(f"not all expected calls are recorded, and more may have happened: {doubted}")
            return self._found(evidence, "fail", self._reason(assigned, seen), measures, seen)
        if self.mode in _WHOLE and doubted is not None:
            return self.not_run(f"the recorded calls are as expected, and more may have happened: {doubted}")
        return self._found(evidence, "pass", f"{len(seen)} calls are as expected ({self.mode})", measures, seen)

    def _holds(self, fitting: Sequence[Sequence[int]], seen: Sequence[ToolCall]) -> bool:
        intervals = [Interval(call.seq, call.result_seq) for call in seen]
        match self.mode:
            case "exact":
                return in_order(fitting, intervals, all_of_them=True)
            case "in_order":
                return in_order(fitting, intervals, all_of_them=False)
            case "any_order":
                return len(fitting) == len(seen) and None not in largest(fitting)
            case "superset":
                return None not in largest(fitting)
            case "subset":
                matched = sum(place is not None for place in largest(fitting)) if len(seen) <= len(fitting) else -1
                return matched == len(seen)
            case "any_of":
                return any(fitting)

    def _reason(self, assigned: Sequence[int | None], seen: Sequence[ToolCall]) -> str:
        used = set(assigned)
        lacking = [item.words for item, place in zip(self.expected or [], assigned, strict=True) if place is None]
        extra = [call for place, call in enumerate(seen) if place not in used]
        reasons = [f"expected and not called: {listed(lacking)}"] if lacking and self.mode != "subset" else []
        if extra and self.mode in _WHOLE:
            shown = [f"{describe(call)}, which was {outcome_words(call)}" for call in extra]
            reasons.append(f"not expected: {listed(shown)}")
        return "; ".join(reasons) or "the calls are the expected ones in another order"

    def _found(
        self,
        evidence: Evidence,
        result: Literal["pass", "fail"],
        reason: str,
        measures: dict[str, float | None],
        seen: Sequence[ToolCall],
    ) -> Finding:
        return self.about(seen, result, f"{self.mode}: {reason}", evidence.trace.coverage.tool_calls, measures)


def scores(matched: int, expected: int, called: int) -> dict[str, float | None]:
    """Precision, recall and F1 of an assignment; 0/0 is null."""
    return {
        "precision": matched / called if called else None,
        "recall": matched / expected if expected else None,
        "f1": 2 * matched / (expected + called) if expected + called else None,
    }
