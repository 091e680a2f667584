"""How far a judge agrees with labels by hand: shares, Cohen's kappa and intervals.

Refuses to know trials and files: a pair is what a person said and what the judge said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from harness.repeats import LEVEL, Interval, wilson
from proxy.spans import JSON

ROUGH = 30
"""Pairs under which kappa's interval, which holds for many, is rough."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Labels against opinions. The four counts are of pairs with both; `failed` of those without an opinion.

    `judge_only` are those where the judge says success and the label does not, `label_only` the other way round.
    """

    both_success: int
    both_failure: int
    judge_only: int
    label_only: int
    failed: int = 0

    @property
    def pairs(self) -> int:
        """How many have both."""
        return self.both_success + self.both_failure + self.judge_only + self.label_only

    @property
    def agreed(self) -> int:
        """How many say the same."""
        return self.both_success + self.both_failure

    @property
    def share(self) -> float | None:
        """Agreement, from 0 to 1; None of no pair."""
        return self.agreed / self.pairs if self.pairs else None

    @property
    def by_chance(self) -> float | None:
        """The agreement that two who say success as often would have by chance (Cohen 1960). None of no pair."""
        if not self.pairs:
            return None
        judge = (self.both_success + self.judge_only) / self.pairs
        label = (self.both_success + self.label_only) / self.pairs
        return judge * label + (1 - judge) * (1 - label)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa. None of no pair, and where both always say the same one thing: 0/0."""
        share, chance = self.share, self.by_chance
        if share is None or chance is None or self._certain:
            return None
        return (share - chance) / (1 - chance)

    @property
    def _certain(self) -> bool:
        """Whether chance alone agrees always: everybody says one thing of everything."""
        return self.pairs in (self.both_success, self.both_failure)

    @property
    def kappa_interval(self) -> Interval | None:
        """Kappa's interval by its standard error for many pairs (Cohen 1960). None where kappa is."""
        kappa, share, chance = self.kappa, self.share, self.by_chance
        if kappa is None or share is None or chance is None:
            return None
        half = NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(share * (1 - share) / self.pairs) / (1 - chance)
        return max(-1.0, kappa - half), min(1.0, kappa + half)

    def as_json(self) -> dict[str, JSON]:
        """All of it; a number that cannot be had is null, and `why_null` says why."""
        why = None
        if not self.pairs:
            why = "no label has an opinion beside it"
        elif self._certain:
            why = "judge and labels say one thing of every trial, so chance would agree as well"
        interval, kappa = wilson(self.agreed, self.pairs), self.kappa_interval
        return {
            "pairs": self.pairs,
            "agreed": self.agreed,
            "agreement": self.share,
            "agreement_interval": None if interval is None else [*interval],
            "kappa": self.kappa,
            "kappa_interval": None if kappa is None else [*kappa],
            "rough": self.pairs < ROUGH,
            "why_null": why,
            "confusion": {
                "both_success": self.both_success,
                "both_failure": self.both_failure,
                "judge_only": self.judge_only,
                "label_only": self.label_only,
            },
            "judge_failed": self.failed,
        }


def agreement(pairs: Sequence[tuple[int, int | None]]) -> Agreement:
    """The agreement of pairs (label, opinion), each 1 or 0; an opinion is None where the judge failed."""

    def count(label: int, opinion: int | None) -> int:
        return sum(pair == (label, opinion) for pair in pairs)

    failed = sum(opinion is None for _, opinion in pairs)
    return Agreement(count(1, 1), count(0, 0), count(0, 1), count(1, 0), failed)
