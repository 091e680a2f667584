"""A judge in a whole run, in what is judged again, and against labels by hand; and a model of a provider as a judge."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.check import command as check
from harness.commands.judge_agreement import command as judge_agreement
from harness.commands.rejudge import command as rejudge
from harness.judgemodel import URL, model_judge
from harness.judges import JudgeError, JudgeFileError
from harness.opinion import Question
from proxy.spans import JSON
from tests.harness.models.provider_standin import Canned, as_json, stand_in
from tests.harness.runs import Ran, run, write_scenario

RUBRIC = "The agent says that it looked."
YES, NO = '{"success": 1, "reasoning": "it does"}', '{"success": 0, "reasoning": "it does not"}'


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Three scenarios, whose agents say something else each, and a judge that fails on one of them."""
    folder = tmp_path_factory.mktemp("judged")
    paths = []
    for name, words in (("good", "I looked."), ("bad", "I did nothing."), ("odd", "Who am I?")):
        agent = folder / f"{name}.agent.json"
        get: JSON = {"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}}
        agent.write_text(json.dumps({"transport": "in_process", "steps": [get, {"say": words}]}))
        called: JSON = {"type": "tool_called", "tool": "mcp/ticketing/get_ticket"}
        paths.append(
            write_scenario(
                folder,
                id=name,
                servers={"ticketing": {"fixture": "ticketing", "trust": "internal"}},
                agent={"scripted": str(agent)},
                assertions=[called, {"type": "judged", "rubric": RUBRIC}],
            )
        )
    judge = folder / "judge.json"
    answers: JSON = [{"when": "looked", "say": YES}, {"when": "nothing", "say": ["hm", NO]}, {"say": "hm"}]
    judge.write_text(json.dumps({"name": "strict-one", "answers": answers}))
    return run(paths, folder, judge=f"scripted:{judge}")


def test_opinions_stand_beside_the_verdicts_in_every_report(ran: Ran) -> None:
    report = ran.document("report.json")
    assert report["result"] == "not_run"
    assert {name: ran.document(name, "1", "verdict.json")["result"] for name in ("good", "bad", "odd")} == {
        "good": "pass", "bad": "pass", "odd": "not_run",
    }  # fmt: skip
    assert (report["over_all"], report["over_valid"]) == (
        {"passed": 2, "trials": 3, "rate": 2 / 3}, {"passed": 2, "trials": 2, "rate": 1.0},
    )  # fmt: skip
    assert report["opinions"] == {
        "judges": ["strict-one"], "judged": 2, "success": 1, "rate": 0.5, "against_verdict": 1, "judge_failed": 1,
    }  # fmt: skip
    findings = ran.document("bad", "1", "verdict.json")["findings"]
    assert isinstance(findings, list)
    assert isinstance(findings[1], dict)
    assert findings[1]["opinion"] == {
        "judge": "strict-one", "success": 0, "reasoning": "it does not", "attempts": 2,
    }  # fmt: skip
    manifest = ran.document("manifest.json")
    assert isinstance(manifest["options"], dict)
    assert manifest["options"]["judge"] == "strict-one"


def test_judged_again_without_a_judge_the_opinions_are_those_of_the_run(ran: Ran, tmp_path: Path) -> None:
    shown = CliRunner().invoke(rejudge, [str(ran.folder)])
    assert shown.exit_code == 1
    assert "judge (strict-one): 0/1 (0 %) a success, 1 against the verdict" in shown.stdout
    assert "judge (strict-one): 0/0 a success, 1 judge_failed" in shown.stdout
    other = tmp_path / "other.yaml"
    other.write_text(json.dumps({"name": "mild-one", "answers": [{"say": YES}]}))
    shown = CliRunner().invoke(rejudge, [str(ran.folder), "--judge", f"scripted:{other}"])
    assert shown.stdout.count("judge (mild-one): 1/1 (100 %) a success\n") == 3
    trace = ran.folder / "odd" / "1" / "trace.json"
    scenario = ran.folder.parents[1] / "odd.yaml"
    arguments = [str(scenario), "--trace", str(trace), "--judge", f"scripted:{other}"]
    assert "judge (mild-one): 1/1" in CliRunner().invoke(check, arguments).stdout


def test_a_judge_is_held_against_labels_by_hand(ran: Ran, tmp_path: Path) -> None:
    labels = tmp_path / "labels.yaml"
    labels.write_text(
        "- {scenario: good, trial: 1, success: 1}\n- {scenario: bad, trial: 1, success: 0}\n"
        "- {scenario: odd, trial: 1, success: 1, assertion: judged}\n"
    )
    shown = CliRunner().invoke(judge_agreement, [str(labels), str(ran.folder), "--format", "json"])
    assert shown.exit_code == 0
    told = json.loads(shown.stdout)
    assert (told["pairs"], told["agreement"], told["kappa"], told["judge_failed"]) == (2, 1.0, 1.0, 1)
    shown = CliRunner().invoke(judge_agreement, [str(labels), str(ran.folder)])
    assert shown.stdout.splitlines()[:2] == [
        "judge strict-one, 3 labels, 1 judge_failed",
        "agreement 2/2 = 1.000 (95 %: 0.342 to 1.000)",
    ]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("{scenario: good, trial: 2, success: 1}", "has no trial 2 of 'good'"),
        ("{scenario: .., trial: 1, success: 1}", "has no trial 1 of '..'"),
        ("{scenario: good, trial: 1, success: 1, assertion: x}", "the trial has no opinion 'x'; it has: judged"),
        ("{scenario: good, trial: 1, success: true}", "labels.yaml:1: [0].success"),
        ("{scenario: good, trial: 1, success: 2}", "labels.yaml:1: [0].success"),
    ],
)
def test_a_label_that_fits_no_trial_is_an_error(ran: Ran, tmp_path: Path, label: str, said: str) -> None:
    labels = tmp_path / "labels.yaml"
    labels.write_text(f"- {label}\n")
    shown = CliRunner().invoke(judge_agreement, [str(labels), str(ran.folder)])
    assert shown.exit_code == 2
    assert said in shown.stderr


def test_two_labels_for_one_opinion_are_an_error_also_where_only_one_has_its_name(ran: Ran, tmp_path: Path) -> None:
    labels = tmp_path / "labels.yaml"
    labels.write_text(
        "- {scenario: good, trial: 1, success: 1}\n- {scenario: good, trial: 1, success: 0, assertion: judged}\n"
    )
    shown = CliRunner().invoke(judge_agreement, [str(labels), str(ran.folder)])
    assert shown.exit_code == 2
    assert "[1]: the opinion 'judged' of this trial has a label already" in shown.stderr


QUESTION = Question("task", "rubric", "answer")
KEY = "not-a-real-key-0123456789"


def test_the_default_judge_is_asked_as_its_provider_documents() -> None:
    answer: JSON = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": YES}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 8},
        "modelVersion": "gemini-2.5-flash",
    }
    with stand_in() as api:
        api.answers = [as_json(answer)]
        judge = model_judge("default", {"GEMINI_API_KEY": KEY, URL: api.url})
        assert asyncio.run(judge.ask("be strict", "the prompt", QUESTION, 1)) == YES
    assert judge.name == "gemini-2.5-flash"
    [asked] = api.asked
    assert asked.path.endswith("/models/gemini-2.5-flash:generateContent")
    assert isinstance(asked.body, dict)
    assert asked.body["contents"] == [{"role": "user", "parts": [{"text": "the prompt"}]}]
    assert "be strict" in json.dumps(asked.body["systemInstruction"])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Canned(KEY.encode(), 429), "the judge could not be asked: HTTP status 429"),
        (Canned(b"no json"), "the judge could not be asked"),
        (as_json({"choices": []}), "the judge could not be asked"),
    ],
)
def test_an_answer_that_is_none_is_the_judges_failure(answer: Canned, said: str) -> None:
    with stand_in() as api:
        api.answers = [answer]
        judge = model_judge("openai:some", {"OPENAI_API_KEY": KEY, URL: f"{api.url}/v1"})
        with pytest.raises(JudgeError, match=said) as wrong:
            asyncio.run(judge.ask("s", "p", QUESTION, 1))
    assert KEY not in str(wrong.value)
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    ("spec", "name", "provider"),
    [
        ("claude-sonnet", "claude-sonnet", "anthropic"),
        ("gpt-x", "gpt-x", "openai"),
        ("openai:gemini-like", "gemini-like", "openai"),
        ("llama:8b", "llama:8b", "openai"),
    ],
)
def test_a_judge_is_named_with_or_without_its_provider(spec: str, name: str, provider: str) -> None:
    judge = model_judge(spec, {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY})
    assert (judge.name, judge.choice.provider) == (name, provider)


@pytest.mark.parametrize(("spec", "url"), [("openai:", None), ("gpt-x", "ftp://x")])
def test_a_name_or_an_address_that_is_none_is_an_error_at_the_start(spec: str, url: str | None) -> None:
    with pytest.raises(JudgeFileError, match=r"names no model|is no address of a server"):
        model_judge(spec, {"OPENAI_API_KEY": KEY, **({} if url is None else {URL: url})})
