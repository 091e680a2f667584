"""Two runs held against each other, paired by scenario and trial: what changed, and whether it is more than chance.

Refuses to know files and how results are shown.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from harness.repeats import Interval, bootstrap
from harness.verdict import Result

SIGNIFICANT = 0.05
Trials = Mapping[tuple[str, int], Result | None]
"""The result of each trial by scenario and number; None where infrastructure took it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One trial whose verdict is another. `base` is None where the base has no such trial."""

    scenario: str
    trial: int
    base: Result | None
    new: Result


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs say of each other.

    `pairs` are trials that say something in both, of `scenarios`; `unpaired` the others, of which `missing` are those
    that the new run does not have, and `spoilt` those that say something in the base and ended as an error of no
    agent's in the new run: an agent may bring that about by not being there. `fresh` are trials of the new run alone
    that say something. `lost` passed in the base alone, `won` in the new one alone. `p_value` is McNemar's exact one
    over the pairs: were both runs alike on these scenarios, each discordant pair were a toss of a fair coin, however
    many trials a scenario has. `interval` is the cluster bootstrap of the difference of the rates, new less base:
    what it would be over other scenarios like these. Each is None where it means nothing, and `why_null` says why.
    """

    pairs: int
    scenarios: int
    unpaired: tuple[tuple[str, int], ...]
    missing: tuple[tuple[str, int], ...]
    spoilt: tuple[Change, ...]
    fresh: tuple[Change, ...]
    changes: tuple[Change, ...]
    lost: int
    won: int
    base_rate: float | None
    new_rate: float | None
    difference: float | None
    p_value: float | None
    interval: Interval | None
    why_null: str | None

    @property
    def verdict(self) -> Literal["worse", "better", "no difference shown"]:
        """Whether the difference is significant at SIGNIFICANT, by the exact test.

        Not by the interval: over few scenarios that all moved a little the same way it leaves 0 out by chance.
        """
        if not self.difference or self.p_value is None or self.p_value >= SIGNIFICANT:
            return "no difference shown"
        return "worse" if self.difference < 0 else "better"


def mcnemar(lost: int, won: int) -> float:
    """The exact two-sided p-value of McNemar's test: discordant pairs are tosses of a fair coin."""
    tosses = lost + won
    tail = sum(math.comb(tosses, count) for count in range(min(lost, won) + 1))
    return min(1.0, float(Fraction(2 * tail, 1 << tosses)))


def compare(base: Trials, new: Trials) -> Comparison:
    """The comparison of two runs' trials."""
    both = sorted(key for key in base.keys() & new.keys() if base[key] is not None and new[key] is not None)
    unpaired = tuple(sorted((base.keys() | new.keys()) - set(both)))
    pairs: list[tuple[tuple[str, int], Result, Result]] = []
    for key in both:
        before, after = base[key], new[key]
        if before is not None and after is not None:
            pairs.append((key, before, after))
    changes = tuple(Change(*key, before, after) for key, before, after in pairs if before != after)
    lost = sum(before == "pass" != after for _, before, after in pairs)
    won = sum(after == "pass" != before for _, before, after in pairs)
    count = len(pairs)
    clusters: dict[str, list[float]] = {}
    for (scenario, _), before, after in pairs:
        clusters.setdefault(scenario, []).append((after == "pass") - (before == "pass"))
    why = "no trial of one run has its like in the other" if not count else None
    interval = bootstrap([(sum(found), float(len(found))) for found in clusters.values()])
    if count and interval is None:
        why = "one scenario has no spread between scenarios"
    elif interval is not None and interval[0] == interval[1]:
        # Every draw is the same, which says nothing of other scenarios.
        interval, why = None, "all scenarios moved alike, so they show no spread"
    return Comparison(
        pairs=count,
        scenarios=len(clusters),
        unpaired=unpaired,
        missing=tuple(sorted(base.keys() - new.keys())),
        spoilt=tuple(
            Change(*key, before, "error")
            for key in sorted(base.keys() & new.keys())
            if (before := base[key]) is not None and new[key] is None
        ),
        fresh=tuple(
            Change(*key, None, result) for key in sorted(new.keys() - base.keys()) if (result := new[key]) is not None
        ),
        changes=changes,
        lost=lost,
        won=won,
        base_rate=_rate([before for _, before, _ in pairs]),
        new_rate=_rate([after for _, _, after in pairs]),
        difference=(won - lost) / count if count else None,
        p_value=mcnemar(lost, won) if count else None,
        interval=interval,
        why_null=why,
    )


def _rate(results: Sequence[Result]) -> float | None:
    return sum(result == "pass" for result in results) / len(results) if results else None
