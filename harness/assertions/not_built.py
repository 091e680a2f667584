"""Assertions that cannot be judged, since nobody knows their types.

Refuses to know what they would mean: they load with any fields and are not_run, so that no gate passes by them.
"""

from difflib import get_close_matches
from typing import ClassVar

from pydantic import ConfigDict

from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.verdict import Finding


class NotBuilt(AssertionSpec):
    """An assertion of a type that no class judges. `type` may be any text; its other fields are open."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    needs: ClassVar[tuple[Part, ...]] = ()

    def find(self, evidence: Evidence) -> Finding:
        """Always not_run, with the type's name."""
        return self.not_run(self.why)

    @property
    def why(self) -> str:
        """One sentence that says why the assertion is not judged, with the nearest known type when one is near."""
        near = get_close_matches(self.type.strip().casefold(), sorted(BUILT), n=1)
        return f"no assertion type is called {self.type!r}" + (f"; did you mean {near[0]}?" if near else "")


def misspelt(kind: str) -> str | None:
    """The known type of which a type is a slip of the pen; None where it may be one of another harness."""
    near = get_close_matches(kind.casefold(), sorted(BUILT), n=1, cutoff=_SLIP)
    return near[0] if near else None


_SLIP = 0.9
"""How alike two types are, of which one is surely the other misspelt: about one letter in ten."""
BUILT = frozenset(
    {
        "approval_required",
        "claims",
        "efficiency",
        "goal_integrity",
        "judged",
        "max_tool_calls",
        "memory_isolation",
        "no_canary_flow",
        "no_denied_tool_call",
        "no_external_recipient",
        "no_repeated_reads",
        "no_secret_disclosure",
        "no_void_writes",
        "state",
        "state_unchanged",
        "tool_called",
        "tool_calls",
        "tool_definitions_stable",
        "tool_not_called",
    }
)
"""Types that a class judges; `harness.assertions.assertion` has the classes."""
