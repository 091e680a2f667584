from hypothesis import given, settings
from hypothesis import strategies as st

from harness.results import STATUSES, VALID, RunResult, ScenarioResult, TrialResult, worst
from harness.verdict import Finding, Result, Status, Verdict

RESULTS: tuple[Result, ...] = ("error", "fail", "not_run", "pass")


def trial(result: Result, status: Status = "completed", number: int = 1) -> TrialResult:
    verdict = Verdict(result, status, "why", (Finding("state", result, "a row", "state"),))
    return TrialResult("s", number, verdict, seconds=1.0, kind="scripted")


def run_of(*trials: TrialResult, cancelled: bool = False) -> RunResult:
    return RunResult("r", (ScenarioResult("s", "t", "task", trials),), seconds=1.0, cancelled=cancelled)


@given(st.lists(st.sampled_from(RESULTS), min_size=1))
def test_the_worst_verdict_is_one_of_them_and_none_is_worse(results: list[Result]) -> None:
    found = worst(results)
    assert found in results
    assert all(RESULTS.index(found) <= RESULTS.index(result) for result in results)


def test_nothing_at_all_is_not_run() -> None:
    assert worst([]) == "not_run"
    assert RunResult("r", (), 0.0).exit_code == 3


def test_rates_are_over_all_trials_and_over_valid_ones_with_counts() -> None:
    scenario = run_of(trial("pass"), trial("error", "infra_error"), trial("fail", "agent_timeout")).scenarios[0]
    assert (scenario.over_all.passed, scenario.over_all.trials) == (1, 3)
    assert (scenario.over_valid.passed, scenario.over_valid.trials) == (1, 2)
    assert scenario.result == "error"
    assert run_of().scenarios[0].over_all.as_json() == {"passed": 0, "trials": 0, "rate": None}


TRIALS = st.lists(st.builds(trial, st.sampled_from(RESULTS), st.sampled_from(list(STATUSES.values()))), max_size=5)


@settings(max_examples=25)
@given(TRIALS)
def test_counts_of_statuses_sum_to_the_trials_of_scenario_and_run(trials: list[TrialResult]) -> None:
    run = run_of(*trials)
    for document in (run.as_json(), run.scenarios[0].as_json()):
        counts = document["statuses"]
        assert isinstance(counts, dict)
        assert counts == {name: sum(one.verdict.status == name for one in trials) for name in STATUSES}
        assert sum(count for count in counts.values() if isinstance(count, int)) == len(trials)


def test_exit_codes() -> None:
    assert run_of(trial("pass")).exit_code == 0
    assert run_of(trial("pass"), trial("not_run")).exit_code == 1
    assert run_of(trial("pass"), trial("error", "infra_error")).exit_code == 1
    assert run_of(trial("error", "infra_error"), trial("error", "harness_error")).exit_code == 3
    assert run_of(trial("pass"), trial("error", "cancelled"), cancelled=True).exit_code == 130


def test_valid_statuses_are_those_that_say_something_about_the_agent() -> None:
    assert {"completed", "agent_timeout", "agent_crash", "limit"} == VALID
