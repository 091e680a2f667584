import os
from dataclasses import replace
from pathlib import Path

from harness.agentfile import ScriptedAgent
from harness.hiding import make_hiding
from harness.results import TrialResult
from harness.runfolder import make_run_folder
from harness.runner import Runner
from harness.selection import Selection, load_selection
from harness.trial import TrialPlan, run_trial
from harness.worker import Job, Start
from tests.harness.runs import SCENARIOS
from tests.harness.test_run import GET, direct, ticketing

NOTHING = make_hiding({}, bytes(32))


def plan_of(path: Path, folder: Path) -> TrialPlan:
    selected = load_selection(Selection((str(path),)))
    (scenario,) = selected.by_id.values()
    return TrialPlan("run", folder, NOTHING, scenario, selected.agents[scenario.id], 1)


def test_a_file_that_changed_since_the_run_began_is_not_run(tmp_path: Path) -> None:
    path = ticketing(tmp_path, direct(GET))
    selection = Selection((str(path),))
    digests = load_selection(selection).digests()
    path.write_text(path.read_text().replace("The agent says hello", "Another title"))
    folder = make_run_folder(tmp_path)
    start = Start(os.getpid(), "run", str(folder), "00" * 32, False, selection, digests)
    heard: list[TrialResult] = []
    jobs = [Job("tickets", trial, "scripted") for trial in (1, 2, 3)]
    results = Runner(start, jobs, 2, heard.append).run()
    assert [result.verdict.status for result in results] == ["harness_error"] * 3
    assert all("changed while the run was under way" in result.verdict.reason for result in results)
    assert len(heard) == 3


def test_a_cancelled_trial_in_process_ends_at_once_and_has_its_verdict(tmp_path: Path) -> None:
    plan = plan_of(ticketing(tmp_path, direct(GET)), tmp_path / "run")
    read, write = os.pipe()
    os.write(write, b"x")
    result = run_trial(replace(plan, cancel=read))
    os.close(read)
    os.close(write)
    assert (result.verdict.result, result.verdict.status) == ("error", "cancelled")
    assert (tmp_path / "run" / "tickets" / "1" / "verdict.json").is_file()


def test_a_trial_in_process_may_run_into_its_time(tmp_path: Path) -> None:
    plan = plan_of(ticketing(tmp_path, direct(GET), limits={"seconds": 1e-6}), tmp_path / "run")
    assert run_trial(plan).verdict.status == "agent_timeout"


def test_every_shipped_scenario_passes_in_process_with_its_own_steps(tmp_path: Path) -> None:
    selected = load_selection(Selection((str(SCENARIOS),)))
    for scenario in selected.by_id.values():
        agent = selected.agents[scenario.id]
        assert isinstance(agent, ScriptedAgent)
        agent = replace(agent, transport="in_process")
        result = run_trial(TrialPlan("run", tmp_path / "run", NOTHING, scenario, agent, 1))
        assert result.verdict.result == "pass", result.verdict
