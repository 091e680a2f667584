from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.comparing import Change, compare, mcnemar
from harness.verdict import Result


def runs(base: str, new: str, trials: int = 1) -> tuple[dict[tuple[str, int], Result | None], ...]:
    words: dict[str, Result | None] = {"p": "pass", "f": "fail", "n": "not_run", "-": None}
    return tuple(
        {(f"s{place // trials:03}", place % trials + 1): words[letter] for place, letter in enumerate(text)}
        for text in (base, new)
    )


@pytest.mark.parametrize(
    ("lost", "won", "p"), [(0, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (8, 1, 0.0390625), (3, 3, 1.0)]
)
def test_mcnemar_is_exact(lost: int, won: int, p: float) -> None:
    assert mcnemar(lost, won) == p == mcnemar(won, lost)


def test_six_lost_passes_are_a_significant_loss_and_five_are_not() -> None:
    assert compare(*runs("pppppp", "ffffff")).verdict == "worse"
    assert compare(*runs("ffffff", "pppppp")).verdict == "better"
    assert compare(*runs("ppppp", "fffff")).verdict == "no difference shown"


def test_every_verdict_that_changed_is_named_and_what_has_no_pair_is_left_out() -> None:
    told = compare(*runs("pfn-", "fff-"))
    assert told.changes == (Change("s000", 1, "pass", "fail"), Change("s002", 1, "not_run", "fail"))
    assert (told.pairs, told.unpaired, told.lost, told.won) == (3, (("s003", 1),), 1, 0)


def test_repeated_trials_have_a_bootstrap_over_scenarios_and_no_mcnemar() -> None:
    told = compare(*runs("pp" * 12, "pf" * 12, trials=2))
    assert told.p_value is None
    assert told.interval == (-0.5, -0.5)
    assert told.verdict == "worse"


def test_one_scenario_with_several_trials_and_no_pair_are_null_with_a_reason() -> None:
    one = compare(*runs("pppp", "ffff", trials=4))
    assert (one.p_value, one.interval, one.verdict) == (None, None, "no difference shown")
    assert one.why_null == "one scenario has no spread between scenarios"
    none = compare({}, {})
    assert (none.difference, none.why_null) == (None, "no trial of one run has its like in the other")


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_chance_of_a_fair_coin(lost: int, won: int) -> None:
    total = lost + won
    far = sum(comb(total, k) for k in range(total + 1) if abs(2 * k - total) >= abs(lost - won))
    assert mcnemar(lost, won) == pytest.approx(far / 2**total)
