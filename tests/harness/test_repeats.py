import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.repeats import (
    Task,
    bounds,
    clustered_error,
    hat_interval,
    naive_error,
    pass_at,
    pass_hat,
    rate_interval,
    share,
    wilson,
)
from harness.report.repeated import repeats_as_json
from tests.harness.shared_data import shared_data


def airline() -> list[Task]:
    data = json.loads(shared_data("tau-bench", "gpt-4o-airline-rewards.json").read_text())
    return [Task(len(row), sum(row)) for row in data["rewards_by_task"].values()]


def test_the_published_runs_of_tau_bench_have_the_published_estimates_to_four_digits() -> None:
    tasks = airline()
    assert (len(tasks), sum(task.trials for task in tasks)) == (50, 200)
    assert [pass_hat(tasks, k) for k in (1, 2, 3, 4)] == pytest.approx([0.42, 0.273333, 0.22, 0.20], abs=5e-7)
    assert [pass_at(tasks, k) for k in (1, 2, 3, 4)] == pytest.approx([0.42, 0.566667, 0.66, 0.72], abs=5e-7)
    assert naive_error(tasks) == pytest.approx(0.0350, abs=5e-5)
    assert clustered_error(tasks) == pytest.approx(0.0522, abs=5e-5)
    assert all((told := wilson(0, count)) is not None and told[0] == 0.0 for count in range(1, 50))
    assert all((told := wilson(count, count)) is not None and told[1] == 1.0 for count in range(1, 50))
    assert wilson(84, 200) == pytest.approx((0.3537, 0.4893), abs=5e-5)
    assert rate_interval(tasks) == pytest.approx((0.32, 0.52), abs=0.011)
    assert hat_interval(tasks, 4) == pytest.approx((0.10, 0.32), abs=0.011)


def test_runs_of_1_0_1_0() -> None:
    tasks = [Task(4, 2)]
    assert [pass_hat(tasks, k) for k in (1, 2, 3)] == [0.5, pytest.approx(1 / 6), 0]
    assert pass_hat(tasks, 5) is None


def test_one_task_with_too_few_trials_makes_the_estimate_null_and_is_never_skipped() -> None:
    assert pass_hat([Task(4, 4), Task(1, 1)], 2) is None
    assert pass_at([Task(4, 4), Task(1, 1)], 2) is None


def test_trials_that_infrastructure_took_leave_the_count_and_widen_the_bounds() -> None:
    tasks = [Task(2, 1, lost=2)]
    assert (share(tasks), bounds(tasks)) == (0.5, (0.25, 0.75))


def test_one_scenario_has_wilson_alone_and_the_reason_is_said() -> None:
    told = repeats_as_json([Task(4, 2)])
    assert told["wilson"] != {"interval": None}
    assert told["standard_error"] == {"naive": pytest.approx(0.2887, abs=1e-4), "clustered": None}
    assert told["why_null"] == "one scenario has no spread between scenarios"
    assert isinstance(told["bootstrap"], dict)
    assert told["bootstrap"]["rate"] is None


def test_few_scenarios_are_marked_rough_and_no_trial_is_all_null() -> None:
    few, none = repeats_as_json([Task(2, 1), Task(2, 2)]), repeats_as_json([Task(0, 0, lost=3)])
    assert isinstance(few["bootstrap"], dict)
    assert few["bootstrap"]["rough"] is True
    assert (none["rate"], none["bounds"], none["why_null"]) == (None, [0, 1], "no trial says anything about the agent")


TASKS = st.integers(1, 6).flatmap(lambda n: st.integers(0, n).map(lambda c: Task(n, c)))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 6).flatmap(lambda n: st.integers(0, n).map(lambda c: Task(n, c))), min_size=1, max_size=8)
)
def test_all_of_k_never_beats_one_of_k_and_both_are_the_rate_at_one(tasks: list[Task]) -> None:
    shortest = min(task.trials for task in tasks)
    hats = [pass_hat(tasks, k) for k in range(1, shortest + 1)]
    ats = [pass_at(tasks, k) for k in range(1, shortest + 1)]
    assert hats[0] == pytest.approx(ats[0])
    for hat, at in zip(hats, ats, strict=True):
        assert hat is not None
        assert at is not None
        assert hat <= at + 1e-12
    told = wilson(sum(task.passed for task in tasks), sum(task.trials for task in tasks))
    rate = share(tasks)
    assert told is not None
    assert rate is not None
    assert -1e-12 <= told[0] <= rate + 1e-12
    assert rate - 1e-12 <= told[1] <= 1
