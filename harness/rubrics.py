"""The rubric that a scenario has as a label: judged like an assertion's, and never what holds a verdict back.

Refuses to know how a judge is asked.
"""

from collections.abc import Callable, Mapping, Sequence

from harness.assertions.assertion import Assertion
from harness.assertions.judged import Judged, Rubric
from harness.evidence import Evidence

LABEL = "rubric"


def with_rubric(
    assertions: Sequence[Assertion], labels: Mapping[str, str], hide: Callable[[str], str] = str
) -> tuple[Assertion, ...]:
    """The assertions, and last the label's rubric, as `hide` leaves it; not where it is blank or one of theirs."""
    rubric = hide(labels.get(LABEL, "").strip())
    known = {one.rubric for one in assertions if isinstance(one, Judged)}
    if not rubric or rubric in known:
        return tuple(assertions)
    return (*assertions, Rubric(type="judged", rubric=rubric))


def answered(assertions: Sequence[Assertion], evidence: Evidence) -> tuple[Assertion, ...]:
    """The assertions without a label's rubric on which nobody gave an opinion, or was asked for one."""
    return tuple(one for one in assertions if not isinstance(one, Rubric) or one.rubric in evidence.opinions)
