import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.agentfile import ScriptedAgent
from harness.crew import Worker
from harness.hiding import make_hiding
from harness.results import Kind, TrialResult
from harness.runfolder import make_run_folder
from harness.runner import Runner
from harness.selection import Selection, load_selection
from harness.trial import TrialPlan, run_trial
from harness.verdict import Verdict
from harness.worker import Job, Start, encode
from tests.harness.runs import SCENARIOS
from tests.harness.ticketing import DIRECT, GET, direct, ticketing

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


def ran_by(runner: Runner) -> TrialResult:
    (result,) = runner.run()
    return result


def runner_of(path: Path, folder: Path, kind: Kind, backstop: float = 60.0, command: tuple[str, ...] = ()) -> Runner:
    selection = Selection((str(path),), command=command or None)
    selected = load_selection(selection)
    run = make_run_folder(folder)
    start = Start(os.getpid(), run.name, str(run), "00" * 32, False, selection, selected.digests())
    limit = next(iter(selected.by_id.values())).limits.seconds
    return Runner(start, [Job("tickets", 1, kind, limit)], 1, lambda _: None, backstop)


def privates() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("wiretrap-*"))


def test_a_worker_that_is_stopped_is_ended_and_its_trial_has_run_into_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    path = ticketing(tmp_path, DIRECT, limits={"seconds": 3})
    stops = (sys.executable, "-c", "import os, signal; os.kill(os.getppid(), signal.SIGSTOP); signal.pause()")
    result = ran_by(runner_of(path, tmp_path / "runs", "real", 0.5, stops))
    assert (result.verdict.result, result.verdict.status) == ("fail", "agent_timeout")
    assert "its worker did not answer" in result.verdict.reason
    assert privates() == set()
    # A scripted agent stops nobody, so there it is a fault of ours.
    result = ran_by(runner_of(path, tmp_path / "runs", "scripted", 0.5, stops))
    assert (result.verdict.result, result.verdict.status) == ("error", "harness_error")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((b"nonsense\n",), "no result"),
        ((b"[" * 100_000 + b"\n",), "no result"),
        ((b'{"ready": 1}\n',), "no result"),
        ((encode(TrialResult("tickets", 2, Verdict("pass", "completed", "all good"), 1.0, "real")),), "asked for"),
        ((encode(TrialResult("tickets", 1, Verdict("pass", "completed", "all good"), 1.0, "real")),), "verdict.json"),
        (
            (encode(TrialResult("tickets", 1, Verdict("error", "cancelled", "so"), 1.0, "real")),),
            "nobody had cancelled",
        ),
    ],
)
def test_a_worker_is_believed_only_what_its_job_and_its_files_bear_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[bytes, ...], said: str
) -> None:
    (tmp_path / "lines").write_bytes(b'{"ready": true}\n' + b"".join(lines))

    def start_liar(_cancel: int) -> Worker:
        program = "cat lines; cat > /dev/null"
        return Worker(
            subprocess.Popen(["sh", "-c", program], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )

    monkeypatch.setattr("harness.runner.start_worker", start_liar)
    result = ran_by(runner_of(ticketing(tmp_path, DIRECT), tmp_path / "runs", "real"))
    assert (result.verdict.result, result.verdict.status) == ("fail", "agent_crash")
    assert said in result.verdict.reason
    assert "tampered" in result.verdict.reason


def test_a_second_result_of_one_job_takes_the_first_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = encode(TrialResult("tickets", 1, Verdict("fail", "completed", "so"), 1.0, "real"))
    (tmp_path / "lines").write_bytes(b'{"ready": true}\n' + line + line)

    def start_liar(_cancel: int) -> Worker:
        program = ["sh", "-c", "cat lines; cat > /dev/null"]
        return Worker(subprocess.Popen(program, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    monkeypatch.setattr("harness.runner.start_worker", start_liar)
    result = ran_by(runner_of(ticketing(tmp_path, DIRECT), tmp_path / "runs", "real"))
    assert "nobody had asked for" in result.verdict.reason
