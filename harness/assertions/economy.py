"""Whether the agent made no more calls than it needed: how many, none twice for the same answer, none without effect.

Refuses to know what the calls were for.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from harness.assertions.absence import doubt
from harness.assertions.arguments import readings
from harness.assertions.calls import Counts, does_count
from harness.assertions.names import is_meant
from harness.assertions.offered import none_of_offered
from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.explain import call_key
from harness.outcomes import describe, is_ok, listed_as
from harness.trace import ToolCall
from harness.verdict import Finding, Result
from proxy.canonical import digest


class _Counted(AssertionSpec):
    needs: ClassVar[tuple[Part, ...]] = ("tool_calls",)

    def found(
        self,
        evidence: Evidence,
        result: Result,
        reason: str,
        calls: Sequence[ToolCall],
        measures: dict[str, float | None] | None = None,
    ) -> Finding:
        """A finding about these calls."""
        return self.about(calls, result, reason, evidence.trace.coverage.tool_calls, measures)


def efficiency(minimum: int, actual: int) -> float:
    """The calls that a task needs over those that were made: at most 1, and 0 for none (agent-mark's definition)."""
    return min(1.0, minimum / actual) if actual else 0.0


class Efficiency(_Counted):
    """`minimum` calls over those that were attempted, at most 1, is at least `at_least`.

    Without `at_least` it is only measured, and fails where no call was made.
    """

    type: Literal["efficiency"]
    minimum: int = Field(ge=0)
    at_least: float | None = Field(default=None, gt=0, le=1)

    def find(self, evidence: Evidence) -> Finding:
        """Fails below the share wanted; fewer calls than the minimum are named."""
        doubted = doubt(evidence)
        if doubted is not None:
            return self.not_run(f"how many calls were made is not known: {doubted}")
        calls = evidence.trace.tool_calls
        share = efficiency(self.minimum, len(calls))
        below = f", below the minimum of {self.minimum}" if len(calls) < self.minimum else ""
        reason = f"{self.minimum} calls are needed, {len(calls)} were made{below}: {share:.4g}"
        good = share >= self.at_least if self.at_least is not None else bool(calls)
        return self.found(evidence, "pass" if good else "fail", reason, calls, {"efficiency": share})


class MaxToolCalls(_Counted):
    """At most `max` calls were made; `counts` says which count, attempts by default."""

    type: Literal["max_tool_calls"]
    max: int = Field(ge=0)
    counts: Counts = "attempted"

    def find(self, evidence: Evidence) -> Finding:
        """Fails on one call more than `max`."""
        calls = [call for call in evidence.trace.tool_calls if does_count(call, self.counts)]
        if len(calls) > self.max:
            past = describe(calls[self.max])
            reason = f"{len(calls)} calls {self.counts}, at most {self.max} wanted; first past it {past}"
            return self.found(evidence, "fail", reason, calls)
        doubted = doubt(evidence)
        if doubted is not None:
            return self.not_run(f"{len(calls)} calls are recorded, and more may have happened: {doubted}")
        return self.found(evidence, "pass", f"{len(calls)} calls {self.counts}, at most {self.max} wanted", calls)


class NoRepeatedReads(_Counted):
    """No read was made again for the answer that it already had: the same tool, arguments and result, and no change.

    `tools` are those that are looked at, every one without it. A call that changed something, by a journal, is no read,
    and a read after such a call of the same server is none that repeats.
    """

    needs: ClassVar[tuple[Part, ...]] = ("tool_calls", "results")

    type: Literal["no_repeated_reads"]
    tools: list[str] | None = Field(default=None, min_length=1)

    def find(self, evidence: Evidence) -> Finding:
        """Fails on a read whose answer an earlier call, over before it began, had given."""
        changing = evidence.once(_changing)
        in_order = {server: sorted(changes) for server, changes in changing.items()}
        answered: dict[tuple[str, str], dict[bytes, list[int]]] = {}
        repeated: list[ToolCall] = []
        cut: ToolCall | None = None
        count = 0
        for call in evidence.trace.tool_calls:
            changes = changing.get(call.mcp_server_id or "", set())
            changed = in_order.get(call.mcp_server_id or "", [])
            if not is_ok(call) or not self._looks_at(call) or call.seq in changes:
                continue
            count += 1
            if call.arguments_truncated or call.result_truncated:
                cut = cut or call
            elif call.result is not None:
                alike = answered.setdefault((str(call.mcp_server_id), str(call.name)), {})
                # No arguments and none of them are one to a server; they may be reported as their text.
                said = bytes.fromhex(digest([readings(call)[0] or {}, call.result]))
                before = alike.setdefault(said, [])
                earlier = bisect_left(before, call.seq)
                if earlier and not _is_between(before[earlier - 1], call.seq, changed):
                    repeated.append(call)
                if call.result_seq is not None:
                    insort(before, call.result_seq)
        if repeated:
            reason = listed_as(repeated, lambda call: f"{describe(call)} had been answered alike before")
            return self.found(evidence, "fail", reason, repeated)
        if cut is not None:
            return self.not_run(f"{describe(cut)} is cut in the record")
        doubted = doubt(evidence)
        if doubted is not None:
            return self.not_run(f"no read is recorded twice, but that is no evidence: {doubted}")
        absent = none_of_offered(self.tools or [], evidence)
        if absent is not None:
            return self.not_run(f"no read is recorded twice, but that is no evidence: {absent}")
        return self.found(evidence, "pass", f"none of {count} reads was made twice", [])

    def _looks_at(self, call: ToolCall) -> bool:
        return self.tools is None or any(is_meant(tool, call) for tool in self.tools)


class NoVoidWrites(_Counted):
    """Every call of `tools` that ended ok changed something in its server's database, by the server's own journal."""

    needs: ClassVar[tuple[Part, ...]] = ("tool_calls", "state")

    type: Literal["no_void_writes"]
    tools: list[str] = Field(min_length=1)

    def find(self, evidence: Evidence) -> Finding:
        """Fails on a write that changed nothing; not_run where no journal tells."""
        changing = evidence.once(_changing)
        writes = [call for call in evidence.trace.tool_calls if is_ok(call) and self._is_write(call)]
        untold = [call for call in writes if call.mcp_server_id not in changing]
        void = [call for call in writes if call.seq not in changing.get(call.mcp_server_id or "", {call.seq})]
        if void:
            return self.found(evidence, "fail", listed_as(void, lambda call: f"{describe(call)} changed nothing"), void)
        if untold:
            told = "the call is the target's own word, which no journal can bear out"
            if untold[0].mcp_server_id is None:
                return self.not_run(f"whether {describe(untold[0])} changed anything cannot be told: {told}")
            return self.not_run(f"no journal tells whether {describe(untold[0])} changed anything")
        doubted = doubt(evidence)
        if doubted is not None:
            return self.not_run(f"no write without effect is recorded, but that is no evidence: {doubted}")
        absent = none_of_offered(self.tools, evidence)
        if absent is not None:
            return self.not_run(f"no write without effect is recorded, but that is no evidence: {absent}")
        return self.found(evidence, "pass", f"each of {len(writes)} writes changed something", writes)

    def _is_write(self, call: ToolCall) -> bool:
        return any(is_meant(tool, call) for tool in self.tools)


def _is_between(low: int, high: int, places: Sequence[int]) -> bool:
    """Whether one of the places, which are sorted, lies between two others."""
    after = bisect_right(places, low)
    return after < len(places) and places[after] < high


def _changing(evidence: Evidence) -> dict[str, set[int]]:
    """For each server that keeps a journal, the places of the calls that changed a row."""
    found: dict[str, set[int]] = {}
    for server, state in evidence.state.items():
        if state.journal is not None:
            keys = {call_key(row.connection, row.request_id) for row in state.journal} - {None}
            found[server] = {
                call.seq
                for call in evidence.trace.tool_calls
                if call.mcp_server_id == server
                and any(call_key(call.connection, one) in keys for one in (call.request_id, *call.rounds))
            }
    return found
