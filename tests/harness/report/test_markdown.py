import json
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.opinion import Opinion
from harness.report.markdown import as_markdown
from harness.report.visible import markdown
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.verdict import Finding, Result, Status, Verdict
from proxy.visible import visible
from tests.harness.report.tables import tables

ANY = st.text(alphabet=st.characters(exclude_categories=()), min_size=1, max_size=40)
MARKS = st.text(alphabet=st.sampled_from("|`\\*_<>[]()#@~!&$: \n\ta1."), min_size=1, max_size=30)


def scenario(name: str, labels: Mapping[str, str], *ends: tuple[Result, Status], reason: str = "why") -> ScenarioResult:
    trials = tuple(
        TrialResult(name, number, Verdict(result, status, reason, (Finding("state", result, reason),)), 1, "scripted")
        for number, (result, status) in enumerate(ends, 1)
    )
    return ScenarioResult(name, "title", "task", trials, labels)


def shown(*scenarios: ScenarioResult) -> dict[str, list[list[str]]]:
    """The tables by the word over their first column."""
    return {table[0][0]: table for table in tables(as_markdown(RunResult("run", scenarios, 1.0)))}


GOOD: tuple[Result, Status] = ("pass", "completed")
BAD: tuple[Result, Status] = ("fail", "completed")
DEAD: tuple[Result, Status] = ("error", "infra_error")


def test_an_errored_run_is_a_row_like_any_other() -> None:
    rows = shown(scenario("a", {}, GOOD), scenario("b", {}, DEAD))["scenario"]
    assert [row[:4] for row in rows[1:]] == [
        ["a", "pass", "1/1 (100 %)", "1/1 (100 %)"],
        ["b", "**error**", "0/1 (0 %)", "0/0"],
    ]
    assert rows[2][4:] == ["-", "-", "-", "why"]


def test_every_scenario_and_all_of_them_have_pass_k_and_an_interval() -> None:
    found = shown(scenario("a", {}, GOOD, BAD, GOOD, BAD), scenario("b", {}, GOOD, GOOD, GOOD, GOOD))
    a, b = found["scenario"][1:]
    assert a[4:7] == [
        "1: 0.5, 2: 0.1667, 3: 0, 4: 0",
        "1: 0.5, 2: 0.8333, 3: 1, 4: 1",
        "0.15 to 0.85 (if trials were independent)",
    ]
    assert b[4] == "1: 1, 2: 1, 3: 1, 4: 1"
    (over_all,) = found["scenarios"][1:]
    assert over_all[1] == "1: 0.75, 2: 0.5833, 3: 0.5, 4: 0.5"
    assert over_all[3].endswith("(over scenarios, rough)")


def test_scenarios_are_grouped_by_the_labels_that_any_of_them_has() -> None:
    found = shown(
        scenario("a", {"toolkit": "mail", "difficulty": "easy"}, GOOD),
        scenario("b", {"toolkit": "mail"}, BAD, DEAD),
        scenario("c", {}, BAD),
    )
    assert "architecture" not in found
    assert [row[:8] for row in found["toolkit"][1:]] == [
        ["mail", "2", "1", "0", "0", "1", "1/3 (33 %)", "1/2 (50 %)"],
        ["-", "1", "0", "0", "1", "0", "0/1 (0 %)", "0/1 (0 %)"],
    ]
    assert [row[0] for row in found["difficulty"][1:]] == ["easy", "-"]
    assert "category" not in found


def test_what_a_judge_thought_is_shown_of_trials_that_pass_too_cut_short_and_whole_in_json() -> None:
    opinions = (Opinion("m", 1, "It is done. " * 50), Opinion("m", None, "no answer"), Opinion("m", 0, "Left open."))
    trials = tuple(
        TrialResult("s", n, Verdict("pass", "completed", "", (Finding("j", "pass", "", opinion=one),)), 1, "real")
        for n, one in enumerate(opinions, 1)
    )
    run = RunResult("run", (ScenarioResult("s", "t", "task", trials),), 1.0)
    (found,) = [table for table in tables(as_markdown(run)) if table[0][0] == "of scenario"]
    assert [row[1:5] for row in found[1:]] == [
        ["1", "pass", "j", "1"],
        ["2", "pass", "j", "judge_failed"],
        ["3", "pass", "j", "0"],
    ]
    assert found[1][5].startswith("It is done. ")
    assert "300 more characters" in found[1][5]
    assert [row[5] for row in found[2:]] == ["no answer", "Left open."]
    assert json.dumps(run.as_json()).count("It is done. ") == 50


def test_every_finding_of_a_failing_trial_is_listed_with_its_reason() -> None:
    findings = tuple(Finding(f"state#{n}", "fail", f"reason {n}", "state") for n in range(4))
    lost = Verdict("fail", "completed", "why", findings, "coordination_failure", coordination="request_loss")
    one = ScenarioResult("s", "t", "task", (TrialResult("s", 1, lost, 1, "scripted"),))
    found = shown(one)
    assert [row[3:] for row in found["in scenario"][1:]] == [[f"state#{n}", f"reason {n}"] for n in range(4)]
    assert found["why"][1:] == [["coordination_failure / request_loss", "1"]]
    assert found.keys() == {"scenario", "status", "why", "in scenario"}


def test_the_ends_of_trials_add_up() -> None:
    rows = shown(scenario("a", {}, GOOD, DEAD), scenario("b", {}, ("fail", "limit")))["status"]
    assert rows[1:] == [["completed", "1"], ["limit", "1"], ["infra_error", "1"]]


@settings(max_examples=150, deadline=None)
@given(text=st.one_of(ANY, MARKS))
def test_whatever_is_said_a_table_keeps_its_columns_and_says_it(text: str) -> None:
    run = RunResult(text, (scenario("a", {"toolkit": text}, BAD, reason=text), scenario("b", {}, GOOD)), 1.0)
    document = as_markdown(run)
    document.encode()
    found = tables(document)
    assert all(len({len(row) for row in table}) == 1 for table in found)
    assert found[0][1][7] == visible(text).strip()
    assert next(table for table in found if table[0][0] == "toolkit")[1][0] == visible(text).strip()


@settings(max_examples=150, deadline=None)
@given(text=st.one_of(ANY, MARKS))
def test_text_holds_no_sign_that_markdown_obeys(text: str) -> None:
    bare = markdown(text).replace("<span>@</span>", "").replace("<span>#</span>", "")
    assert not set(bare) & set("|`\\*<>[]@~!$^+{}")
    assert "www." not in bare.lower()
    assert "://" not in bare
