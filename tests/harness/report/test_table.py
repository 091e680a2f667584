import io
import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.opinion import Opinion
from harness.repeats import Task
from harness.report.estimates import estimates_text, hats_text
from harness.report.progress import Progress
from harness.report.table import Style, as_table
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.verdict import Finding, Result, Status, Verdict
from proxy.visible import visible


def trial(
    number: int, result: Result, status: Status = "completed", reason: str = "why", findings: tuple[Finding, ...] = ()
) -> TrialResult:
    return TrialResult("s", number, Verdict(result, status, reason, findings), 0.5, "scripted")


PLAIN = Style()


def table(*trials: TrialResult, style: Style = PLAIN) -> str:
    return as_table(RunResult("r", (ScenarioResult("support.x", "t", "task", trials),), 1.0), style)


WRONG = Finding("state", "fail", "ticketing: row 1, column status is 'open'", "state")
RIGHT = Finding("tool_called", "pass", "called once", "wire")


def test_a_failing_finding_is_told_with_its_reason_and_a_passing_one_is_not() -> None:
    text = table(trial(1, "fail", reason="state: …", findings=(RIGHT, WRONG)))
    assert "fail state: ticketing: row 1, column status is 'open'" in text
    assert "tool_called" not in text


def test_rates_stand_with_their_counts() -> None:
    text = table(trial(1, "pass"), trial(2, "error", "infra_error"), trial(3, "fail"))
    assert re.search(r"support\.x +ERROR +1/3 \(33 %\) +1/2 \(50 %\)", text)


def test_trials_that_end_alike_are_told_once() -> None:
    text = table(*(trial(number, "fail", findings=(WRONG,)) for number in (1, 2, 3)))
    assert "trials 1, 2, 3: fail (completed)" in text
    assert text.count("column status") == 1


def test_a_status_other_than_completed_is_told_with_its_reason() -> None:
    assert "trial 1: fail (agent_crash): exit code 3" in table(trial(1, "fail", "agent_crash", "exit code 3"))


def test_lines_are_folded_to_the_width_and_not_at_all_without_one() -> None:
    long = Finding("state", "fail", "word " * 60, "state")
    narrow = table(trial(1, "fail", findings=(long,)), style=Style(width=60))
    assert max(len(line) for line in narrow.splitlines() if "word" in line) <= 60
    assert any(len(line) > 300 for line in table(trial(1, "fail", findings=(long,))).splitlines())


def test_colour_only_where_it_is_asked_for() -> None:
    assert "\x1b" not in table(trial(1, "fail"))
    assert "\x1b[31mFAIL" in table(trial(1, "fail"), style=Style(colour=True))


def test_an_agents_text_cannot_steer_the_terminal() -> None:
    nasty = Finding("state", "fail", "a\x1b[2Jb\rc\u202ed\ud800", "state")
    text = table(trial(1, "fail", findings=(nasty,)))
    assert r"a\x1b[2Jb\rc\u202ed\ud800" in text
    text.encode()


def test_findings_with_one_reason_share_a_line() -> None:
    never = "the agent never spoke to a server"
    findings = tuple(Finding(name, "not_run", never) for name in ("tool_called", "goal_integrity", "tool_called#2"))
    text = table(trial(1, "not_run", findings=(*findings, WRONG)))
    assert text.count(never) == 1
    assert f"not run tool_called, goal_integrity, tool_called#2: {never}" in text


def test_after_a_bad_end_what_cannot_be_told_is_one_line_and_what_failed_keeps_its_reason() -> None:
    findings = (Finding("a", "not_run", "one"), Finding("b", "not_run", "two"), WRONG)
    text = table(trial(1, "fail", "agent_timeout", "it took too long", findings))
    assert "not run a, b: cannot be told, since the trial ended as agent_timeout" in text
    assert "fail state: ticketing: row 1" in text


def test_what_an_agent_said_at_its_end_stands_under_its_trial() -> None:
    result = RunResult("r", (ScenarioResult("s", "t", "task", (trial(1, "fail", "agent_crash"),)),), 1.0)
    assert "    agent.err ends in: oh\\x1b no" in as_table(result, PLAIN, {("s", 1): "agent.err ends in: oh\x1b no"})


def test_repeated_trials_have_pass_k_and_an_interval_for_each_scenario_and_over_all() -> None:
    text = table(trial(1, "pass"), trial(2, "fail"), trial(3, "pass"), trial(4, "fail"))
    told = (
        "pass^k 1: 0.5, 2: 0.1667, 3: 0, 4: 0; pass@k 1: 0.5, 2: 0.8333, 3: 1, 4: 1; "
        "95 % of passing 0.15 to 0.85 (if trials were independent)"
    )
    assert f"    {told}\n" in text
    assert f"Over all: {told}\n" in text
    assert "pass^k" not in table(trial(1, "pass"))


def test_of_many_trials_the_powers_of_two_and_the_last_k_are_shown() -> None:
    assert hats_text([Task(20, 20)]) == "1: 1, 2: 1, 3: 1, 4: 1, 8: 1, 16: 1, 20: 1"
    assert estimates_text([Task(0, 0, 3)]) == "pass^k - (a scenario has no valid trial); pass@k -; 95 % of passing -"


def test_over_several_scenarios_no_k_is_shown_that_one_of_them_has_not() -> None:
    told = estimates_text([Task(4, 2), Task(2, 2)])
    assert told.startswith("pass^k 1: 0.75, 2: 0.5833; pass@k")
    assert told.endswith(" (over scenarios, rough)")


def test_valid_is_explained_where_a_trial_is_not() -> None:
    assert "A trial is valid when" in table(trial(1, "error", "infra_error"))
    assert "A trial is valid when" not in table(trial(1, "pass"))


@settings(max_examples=150)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_visible_text_is_one_line_that_can_be_encoded(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert visible(shown) == shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_silent_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(2, stream)
    progress.advance("s", True)
    progress.finish()
    assert stream.getvalue() == ""


def test_progress_counts_on_a_terminal_and_goes_away() -> None:
    stream = Terminal()
    progress = Progress(2, stream)
    progress.advance("first", True)
    progress.advance("second", False)
    assert "1/2" in stream.getvalue()
    assert "2/2, 1 not passed second" in stream.getvalue()
    progress.finish()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_why_a_trial_failed_and_how_a_fact_was_lost_stand_under_it() -> None:
    lost = Verdict("fail", "completed", "state: …", (WRONG,), "coordination_failure", coordination="request_loss")
    assert "    why: coordination_failure / request_loss\n" in table(TrialResult("s", 1, lost, 0.5, "scripted"))
    assert "why:" not in table(trial(1, "pass"))


def test_what_a_judge_thought_is_a_line_under_a_trial_that_is_no_pass() -> None:
    thought = Opinion("m", 0, "The ticket was left open.")
    judged = replace(WRONG, opinion=thought)
    assert "    judge on state: The ticket was left open.\n" in table(trial(1, "fail", findings=(judged,)))


def test_where_all_came_out_alike_the_interval_is_no_certainty() -> None:
    assert "0.6457 to 1 (over scenarios, rough)" in estimates_text([Task(1, 1)] * 7)
    assert "0 to 0.3543 (over scenarios, rough)" in estimates_text([Task(1, 0)] * 7)
