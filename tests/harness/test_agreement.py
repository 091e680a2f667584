"""Agreement of a judge with labels by hand, against figures that are worked out elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agreement import agreement


def test_kappa_is_that_of_a_worked_example() -> None:
    # Both yes 20, both no 15, one alone 5, the other alone 10: agreement 0.7, by chance 0.5, kappa 0.4.
    pairs = [(1, 1)] * 20 + [(0, 0)] * 15 + [(1, 0)] * 5 + [(0, 1)] * 10
    told = agreement([*pairs, (1, None), (0, None)])
    assert (told.pairs, told.failed, told.label_only, told.judge_only) == (50, 2, 5, 10)
    assert told.share == pytest.approx(0.7)
    assert told.kappa == pytest.approx(0.4)
    assert told.kappa_interval == pytest.approx((0.1459, 0.6541), abs=1e-3)


@pytest.mark.parametrize("pairs", [[], [(1, None)], [(1, 1)] * 3, [(0, 0)]])
def test_kappa_is_null_where_it_is_not_defined_and_the_reason_is_given(pairs: list[tuple[int, int | None]]) -> None:
    told = agreement(pairs).as_json()
    assert (told["kappa"], told["kappa_interval"]) == (None, None)
    assert told["why_null"]


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1, None]))))
def test_every_number_stays_within_its_bounds(pairs: list[tuple[int, int | None]]) -> None:
    told = agreement(pairs)
    assert told.pairs + told.failed == len(pairs)
    if told.kappa is not None:
        assert told.kappa_interval is not None
        assert -1 <= told.kappa_interval[0] <= told.kappa <= told.kappa_interval[1] <= 1
    turned = agreement([(1 - label, None if opinion is None else 1 - opinion) for label, opinion in pairs])
    assert turned.kappa == (None if told.kappa is None else pytest.approx(told.kappa))
