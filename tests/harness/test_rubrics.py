"""The rubric of a label: a signal where a judge was asked, in runs and sweeps, and nothing where none was."""

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from harness.assertions.assertion import parse_assertion
from harness.assertions.judged import Judged
from harness.checking import check_trace, rejudge_run
from harness.commands.sweep import command as sweep
from harness.judge import judge
from harness.judges import scripted_judge
from harness.opinion import Opinion
from harness.rubrics import answered, with_rubric
from harness.scenario import load_scenario
from harness.trace import ToolCall
from proxy.spans import JSON
from tests.harness.made import recorded
from tests.harness.runs import SCENARIOS

CALLED = parse_assertion({"type": "tool_called", "tool": "look"})
RUBRIC = {"rubric": "The answer is short."}


def test_the_labels_rubric_is_judged_last_once_and_with_what_was_hidden() -> None:
    [called, rubric] = with_rubric([CALLED], RUBRIC, str.upper)
    assert called is CALLED
    assert isinstance(rubric, Judged)
    assert rubric.rubric == "THE ANSWER IS SHORT."
    assert with_rubric([CALLED], {"rubric": " "}) == with_rubric([CALLED], {}) == (CALLED,)
    own = parse_assertion({"type": "judged", **RUBRIC})
    assert with_rubric([own], RUBRIC) == (own,)


def test_no_opinion_on_it_holds_no_verdict_back_and_one_stands_beside_it() -> None:
    evidence = recorded(ToolCall("look", {}, outcome="ok", names=("look",)))
    assertions = with_rubric([CALLED], RUBRIC)
    assert judge(answered(assertions, evidence), evidence, "completed").result == "pass"
    told = replace(evidence, opinions={RUBRIC["rubric"]: Opinion("strict", 0, "it is long", 1)})
    verdict = judge(answered(assertions, told), told, "completed")
    assert (verdict.result, [finding.result for finding in verdict.findings]) == ("pass", ["pass", "fail"])
    assert "a judge thinks otherwise" in verdict.reason
    # An assertion that a scenario makes is another matter: what it asks for was not looked at.
    own = parse_assertion({"type": "judged", **RUBRIC})
    assert judge([CALLED, own], evidence, "completed").result == "not_run"
    # So is a judge that gave no opinion: a wrong key is no greener than none.
    failed = replace(evidence, opinions={RUBRIC["rubric"]: Opinion("strict", None, "the key is wrong", 2)})
    assert judge([CALLED, own], failed, "completed").reason == "judged: strict: judge_failed: the key is wrong"
    assert judge([own], failed, "completed").result == "not_run"
    labelled = judge(answered(assertions, failed), failed, "completed")
    assert (labelled.result, [finding.result for finding in labelled.findings]) == ("pass", ["pass", "not_run"])


def test_a_sweep_asks_the_judge_for_the_rubrics_of_the_shipped_tasks(tmp_path: Path) -> None:
    mail = SCENARIOS / "mail"
    agents: JSON = {"right": str(mail / "agents" / "count_inbox_right.yaml")}
    task = mail / "count_inbox.yaml"
    file = tmp_path / "sweep.yaml"
    file.write_text(json.dumps({"tasks": [str(task)], "agents": agents}))
    strict = tmp_path / "judge.yaml"
    strict.write_text(json.dumps({"name": "strict", "answers": [{"say": '{"success": 0, "reasoning": "no"}'}]}))
    asked = CliRunner().invoke(
        sweep, [str(file), "--out", str(tmp_path / "out"), "--judge", f"scripted:{strict}", "--format", "json"]
    )
    assert asked.exit_code == 0, asked.output
    [told] = json.loads(asked.stdout)["agents"]
    assert told["raw"]["passed"] == 1
    assert told["opinions"] == {
        "judges": ["strict"], "judged": 1, "success": 0, "rate": 0.0, "against_verdict": 1, "judge_failed": 0,
    }  # fmt: skip
    [folder] = (tmp_path / "out").iterdir()
    [row] = [line for line in (folder / "sweep.md").read_text().splitlines() if "strict" in line]
    assert row == "| right | strict | 0/1 (0 %) | 1 | 0 |"
    [again] = rejudge_run(folder, (), print)
    assert [finding.opinion.success for finding in again.result.verdict.findings if finding.opinion is not None] == [0]
    [anew] = rejudge_run(folder, (), print, scripted_judge(strict))
    assert anew.result.verdict.result == "pass"
    scenario, trace = load_scenario(task), folder / "right.mail.count_inbox" / "1" / "trace.json"
    without, beside = check_trace(scenario, trace, {}), check_trace(scenario, trace, {}, scripted_judge(strict))
    assert "judged" not in [finding.id for finding in without.result.verdict.findings]
    assert "judged" in [finding.id for finding in beside.result.verdict.findings]
