"""The support tasks, done right and wrong, judged with the agents' own events and without: only the mode may go."""

from pathlib import Path

import pytest

from harness.checking import check_trace, rejudge_run
from harness.scenario import load_scenario
from harness.targets.fixtures import fixture_offers
from harness.verdict import FailureCategory, Mode
from proxy.spans import JSON
from proxy.vocabulary import EVENT_TYPE
from tests.harness.architectures.trials import SUPPORT, Tried, agent_file, credit_hold, try_once
from tests.harness.runs import run

SCRIPTS = sorted(file.stem for file in (SUPPORT / "scripts").glob("*.yaml"))
FORMS: dict[str, dict[str, JSON]] = {
    "single agent": {},
    "open peers": {"architecture": "peer_to_peer"},
    "rigid peers": {"architecture": "peer_to_peer", "handoff": "rigid"},
    "supervisor": {"architecture": "supervisor_worker"},
    "debate": {"architecture": "debate_critic"},
}
LOOK: JSON = {"at_most": 1, "call": "get_customer_profile", "arguments": {"customer_id": "CUST-004"}}
ACT: JSON = {
    "when": {"offered": "update_ticket"},
    "at_most": 1,
    "call": "update_ticket",
    "arguments": {"ticket_id": 2, "status": "escalated"},
}
SAY: JSON = {"say": "It is done."}
STOP: JSON = {"when": {"agent": "supervisor"}, "say": "It is done."}


def ask(worker: str, instruction: str) -> JSON:
    arguments: JSON = {"worker": worker, "instruction": instruction}
    return {"when": {"offered": "delegate"}, "at_most": 1, "call": "delegate", "arguments": arguments}


def agree(tried: Tried) -> None:
    verdict, without = tried.verdict, tried.without
    assert (without.result, without.status, without.category) == (verdict.result, verdict.status, verdict.category)
    assert without.coordination in (verdict.coordination, None)


@pytest.mark.parametrize("form", FORMS)
def test_every_shipped_script_has_its_verdict_and_category_without_the_agents_events(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for script in SCRIPTS:
        folder = tmp_path / script
        folder.mkdir()
        tried = try_once(credit_hold(folder), agent_file(folder, script, **FORMS[form]), folder, monkeypatch)
        agree(tried)


def test_the_other_support_task_has_its_verdict_and_category_without_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = load_scenario(SUPPORT / "customer_escalation.yaml", fixture_offers())
    for form, fields in FORMS.items():
        folder = tmp_path / form
        folder.mkdir()
        tried = try_once(scenario, agent_file(folder, "escalating", **fields), folder, monkeypatch)
        assert tried.verdict.category == "pass", (form, tried.verdict)
        agree(tried)


@pytest.mark.parametrize(
    ("fields", "rules", "category", "mode"),
    [
        ({}, [ACT, SAY], "task_failure", None),
        ({}, [ACT, LOOK, SAY], "task_failure", None),
        (FORMS["open peers"], [LOOK, SAY], "coordination_failure", "machinery_never_fired"),
        (FORMS["open peers"], [SAY], "coordination_failure", "machinery_never_fired"),
        (
            FORMS["open peers"],
            [{"when": {"offered": "hand_over"}, "at_most": 1, "call": "hand_over", "fill": True}, ACT, SAY],
            "task_failure",
            None,
        ),
        (FORMS["supervisor"], [SAY], "coordination_failure", "machinery_never_fired"),
        (
            FORMS["supervisor"],
            [ask("ticketing_worker", "Escalate."), STOP, ACT, SAY],
            "coordination_failure",
            "request_loss",
        ),
        (FORMS["supervisor"], [ask("crm_worker", "Give me the profile."), SAY], "task_failure", None),
        (FORMS["debate"], [{"when": {"agent": "critic"}, "say": "ACCEPT."}, ACT, SAY], "task_failure", None),
        ({**FORMS["debate"], "revisions": 0}, [ACT, SAY], "coordination_failure", "machinery_never_fired"),
        ({**FORMS["debate"], "revisions": 0}, [ACT, LOOK, SAY], "coordination_failure", "machinery_never_fired"),
        (
            FORMS["debate"],
            [{"when": {"agent": "critic"}, "say": "REVISE."}, ACT, LOOK, SAY],
            "coordination_failure",
            None,
        ),
    ],
    ids=[
        "acted without looking",
        "looked too late",
        "never handed over",
        "neither looked nor handed over",
        "handed over without having looked",
        "never delegated",
        "asked nobody who could know",
        "asked one who did not look",
        "reviewed, and nobody had looked",
        "no review, and nobody looked",
        "no review, and looked too late",
        "an objection that changes nothing",
    ],
)
def test_whether_coordination_failed_shows_on_the_wire_and_by_who_the_agents_are(
    fields: dict[str, JSON],
    rules: list[JSON],
    category: FailureCategory,
    mode: Mode | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = try_once(credit_hold(tmp_path), agent_file(tmp_path, rules, **fields), tmp_path, monkeypatch)
    assert (tried.verdict.result, tried.verdict.category) == ("fail", category), tried.verdict
    assert tried.verdict.coordination == mode
    agree(tried)


def test_who_the_agents_are_stands_in_the_manifest_for_whoever_judges_the_run_again(tmp_path: Path) -> None:
    wrong: JSON = {
        "type": "tool_not_called",
        "tool": "mcp/ticketing/update_ticket",
        "arguments": {"status": "escalated"},
    }
    scenario = credit_hold(tmp_path, wrong)
    ran = run([scenario.path], tmp_path, agent=agent_file(tmp_path, "hasty", **FORMS["debate"]))
    [trial] = ran.result.trials
    assert (trial.verdict.category, trial.verdict.coordination) == ("coordination_failure", "critic_missed_error")
    spans = ran.folder / scenario.id / "1" / "spans"
    record = spans / "run.jsonl"
    kept = [line for line in record.read_text().splitlines(keepends=True) if EVENT_TYPE not in line]
    record.write_text("".join(kept))
    [again] = rejudge_run(ran.folder, (), print)
    assert (again.result.verdict.category, again.result.verdict.coordination) == ("coordination_failure", None)
    checked = check_trace(scenario, spans, {})
    assert (checked.result.verdict.category, checked.result.verdict.coordination) == ("coordination_failure", None)
    # Without the manifest nobody knows that there was a critic.
    (ran.folder / "manifest.json").write_text("{}")
    assert check_trace(scenario, spans, {}).result.verdict.category == "task_failure"
