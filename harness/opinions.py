"""A judge's opinions over trials: how many there are, how many say success, and how many differ from the verdict.

Refuses to know how a judge is asked, and how results are shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from harness.assertions.assertion import Assertion
from harness.assertions.judged import Judged
from harness.opinion import Opinion
from harness.verdict import Verdict
from proxy.spans import JSON

_OPINION: TypeAdapter[Opinion] = TypeAdapter(Opinion)


@dataclass(frozen=True, slots=True)
class OpinionCount:
    """`judged` opinions, `success` of them 1, `against` of them other than a verdict of pass or fail; `failed` are
    those that a judge was asked for and did not give, which are in none of the other numbers."""

    judges: tuple[str, ...]
    judged: int
    success: int
    against: int
    failed: int

    @property
    def asked(self) -> int:
        """How often a judge was asked for an opinion."""
        return self.judged + self.failed


def count_opinions(verdicts: Sequence[Verdict]) -> OpinionCount:
    """The opinions in these verdicts."""
    found = [(one.opinion, verdict) for verdict in verdicts for one in verdict.findings if one.opinion is not None]
    given = [(opinion.success, verdict.result) for opinion, verdict in found if opinion.success is not None]
    return OpinionCount(
        tuple(dict.fromkeys(opinion.judge for opinion, _ in found)),
        len(given),
        sum(success == 1 for success, _ in given),
        sum((success, result) in {(1, "fail"), (0, "pass")} for success, result in given),
        len(found) - len(given),
    )


def opinions_as_json(verdicts: Sequence[Verdict]) -> dict[str, JSON]:
    """`{"opinions": …}` for a report; nothing where no judge was asked."""
    count = count_opinions(verdicts)
    if not count.asked:
        return {}
    return {
        "opinions": {
            "judges": [*count.judges],
            "judged": count.judged,
            "success": count.success,
            "rate": count.success / count.judged if count.judged else None,
            "against_verdict": count.against,
            "judge_failed": count.failed,
        }
    }


def read_opinions(told: Mapping[str, JSON]) -> dict[str, Opinion]:
    """The opinions in a trial's verdict.json, by the id of their finding; what is none is left out."""
    findings = told.get("findings")
    found: dict[str, Opinion] = {}
    for one in findings if isinstance(findings, list) else []:
        if isinstance(one, dict) and isinstance(name := one.get("id"), str) and "opinion" in one:
            try:
                found[name] = _OPINION.validate_python(one["opinion"])
            except ValidationError:
                continue
    return found


def recorded_opinions(assertions: Sequence[Assertion], told: Mapping[str, JSON]) -> dict[str, Opinion]:
    """The opinions of a trial that was judged before, by rubric, as far as the assertions have their ids still."""
    recorded = read_opinions(told)
    found: dict[str, Opinion] = {}
    number = 0
    for assertion in assertions:
        if not isinstance(assertion, Judged):
            continue
        number += assertion.id is None
        name = assertion.id or ("judged" if number == 1 else f"judged#{number}")
        if name in recorded:
            found[assertion.rubric] = recorded[name]
    return found
