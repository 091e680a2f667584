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


def test_repeated_trials_have_an_exact_test_and_a_bootstrap_over_scenarios() -> None:
    told = compare(*runs("pp" * 12, "pf" * 10 + "ff" + "pp", trials=2))
    assert told.p_value == mcnemar(12, 0)
    assert told.interval is not None
    assert -0.75 < told.interval[0] < told.interval[1] < -0.25
    assert (told.verdict, told.scenarios, told.why_null) == ("worse", 12, None)


def test_a_few_lost_trials_are_no_loss_because_each_scenario_lost_as_many() -> None:
    told = compare(*runs("p" * 20, ("f" + "p" * 9) * 2, trials=10))
    assert (told.lost, told.interval, told.verdict) == (2, None, "no difference shown")
    assert told.why_null == "all scenarios moved alike, so they show no spread"
    unlike = compare(*runs("p" * 20, "f" + "p" * 9 + "ff" + "p" * 8, trials=10))
    assert unlike.interval is not None
    assert (unlike.interval[1] < 0, unlike.verdict) == (True, "no difference shown")


def test_one_scenario_that_is_lost_altogether_is_a_loss() -> None:
    one = compare(*runs("p" * 50, "f" * 50, trials=50))
    assert (one.interval, one.verdict) == (None, "worse")
    assert one.why_null == "one scenario has no spread between scenarios"
    assert compare(*runs("pppp", "ffff", trials=4)).verdict == "no difference shown"


def test_what_the_new_run_alone_has_is_told() -> None:
    base, new = runs("p", "pf-")
    assert compare(base, new).fresh == (Change("s001", 1, None, "fail"),)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=60))
def test_a_verdict_of_worse_or_better_has_six_changed_trials_and_the_direction_of_its_difference(
    pairs: list[tuple[int, bool, bool]],
) -> None:
    words: tuple[Result, Result] = ("fail", "pass")
    before = {(f"s{scenario}", trial): words[one] for trial, (scenario, one, _) in enumerate(pairs)}
    after = {(f"s{scenario}", trial): words[other] for trial, (scenario, _, other) in enumerate(pairs)}
    told, back = compare(before, after), compare(after, before)
    assert {told.verdict, back.verdict} in ({"worse", "better"}, {"no difference shown"})
    if told.verdict != "no difference shown":
        assert told.lost + told.won >= 6
        assert (told.verdict == "worse") == (told.lost > told.won)


def test_runs_without_a_pair_are_null_with_a_reason() -> None:
    none = compare({}, {})
    assert (none.difference, none.why_null) == (None, "no trial of one run has its like in the other")


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_chance_of_a_fair_coin(lost: int, won: int) -> None:
    total = lost + won
    far = sum(comb(total, k) for k in range(total + 1) if abs(2 * k - total) >= abs(lost - won))
    assert mcnemar(lost, won) == pytest.approx(far / 2**total)
