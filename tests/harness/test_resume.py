import json
import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.run import command
from harness.recordedrun import file_of
from harness.results import TrialResult
from harness.resuming import read_begun
from harness.runfolder import RESULTS, RunFolderError
from harness.runjournal import RunJournal, await_workers, hold_as_worker, read_results, run_lock
from harness.running import Going, resume_run
from harness.tracesource import span_folders
from harness.verdict import Status, Verdict
from proxy.spans import JSON
from tests.harness.killing import differing, kill_at, left, records, run_folder, start, write_scenarios
from tests.harness.runs import behave, run, write_scenario


def result(trial: int, status: Status = "completed", reason: str = "so") -> TrialResult:
    return TrialResult("s", trial, Verdict("fail", status, reason), 1.0, "scripted", folder=f"s/{trial}")


def journal(folder: Path, *results: TrialResult) -> Path:
    written = RunJournal(folder)
    for one in results:
        written.add(one)
    written.close()
    return folder / RESULTS


def test_a_run_that_is_killed_at_any_record_and_gone_on_with_is_the_run_that_was_not(tmp_path: Path) -> None:
    paths = write_scenarios(tmp_path / "scenarios", trials=1)
    whole = run(paths, tmp_path / "whole")
    most = records(tmp_path / "whole" / "runs")
    # Another one each time; `make resume` has many.
    draw = random.Random()
    record, workers = draw.randint(1, most - 3), draw.random() < 0.5
    said = f"killed at record {record} of {most}, {'with' if workers else 'without'} its workers"
    # A run may be over before this process, on a busy machine, has had its turn.
    outs = (tmp_path / f"out{attempt}" for attempt in range(5))
    out = next((out for out in outs if kill_at(start(paths, out), out, record, workers=workers)), None)
    assert out is not None, said
    folder = run_folder(out)
    before = {path: path.stat().st_ino for path in folder.glob("*/1/verdict.json") if is_finished(folder, path)}
    resumed, same = resume_run(folder, None, Going())
    assert same == folder
    assert differing(left(whole.folder), left(folder)) == [], said
    assert resumed.exit_code == whole.result.exit_code == 1
    assert {path: path.stat().st_ino for path in before} == before
    assert [found.parent.name for found in span_folders(folder)] == ["1", "1"]


def is_finished(folder: Path, verdict: Path) -> bool:
    return (verdict.parents[1].name, 1) in read_results(folder)


def test_a_run_that_was_finished_is_only_reported_again_and_refuses_what_has_changed(tmp_path: Path) -> None:
    (tmp_path / "seed.yaml").write_text("tickets: [{id: 1, customer_id: C, status: open, description: d}]")
    (tmp_path / "policy.yaml").write_text("default: allow")
    (tmp_path / "agent.yaml").write_text(
        json.dumps({"steps": [{"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}}]})
    )
    path = write_scenario(
        tmp_path,
        servers={"ticketing": {"fixture": "ticketing", "seed": "seed.yaml"}},
        policy={"file": "policy.yaml"},
        agent={"scripted": "agent.yaml"},
        assertions=[{"type": "tool_called", "tool": "mcp/ticketing/get_ticket"}],
    )
    ran = run([path], tmp_path)
    before = left(ran.folder)
    verdict = (ran.folder / "small" / "1" / "verdict.json").stat()
    again, _ = resume_run(ran.folder, None, Going())
    assert (again.exit_code, differing(before, left(ran.folder))) == (0, [])
    assert (ran.folder / "small" / "1" / "verdict.json").stat() == verdict
    manifest = ran.document("manifest.json")
    assert isinstance(manifest["resumed_at"], list)
    assert len(manifest["resumed_at"]) == 1
    for name in ("small.yaml", "seed.yaml", "policy.yaml", "agent.yaml"):
        file = tmp_path / name
        text = file.read_text()
        file.write_text(f"{text}\n# Changed.\n")
        with pytest.raises(RunFolderError, match=f"made of something else.*{name}.* is not what it was"):
            resume_run(ran.folder, None, Going())
        file.write_text(text)
    assert differing(before, left(ran.folder)) == []
    with pytest.raises(RunFolderError, match="was no --command"):
        resume_run(ran.folder, ("true",), Going())
    with run_lock(ran.folder), pytest.raises(RunFolderError, match="the run is under way"):
        resume_run(ran.folder, None, Going())
    manifest_file = ran.folder / "manifest.json"
    for text, said in (("{}", "does not say what was asked for"), ("{", "cannot be read")):
        manifest_file.write_text(text)
        with pytest.raises(RunFolderError, match=said):
            resume_run(ran.folder, None, Going())
    manifest_file.unlink()
    with pytest.raises(RunFolderError, match=r"no manifest\.json.*start a new run"):
        resume_run(ran.folder, None, Going())
    manifest_file.write_text(text)
    with pytest.raises(RunFolderError, match=f"name a run folder in it, such as {ran.folder}$"):
        resume_run(ran.folder.parent, None, Going())


def test_the_files_of_a_run_are_found_from_another_folder_where_it_is_judged_and_named_where_it_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    write_scenario(there)
    here.mkdir()
    options: JSON = {
        "folder": str(there), "paths": ["small.yaml"], "trials": None, "agent": None, "command": False, "profile": None,
    }  # fmt: skip
    manifest: dict[str, JSON] = {"started_at": "2026-11-30T10:00:00Z", "resumed_at": [], "options": options}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.chdir(here)
    assert file_of(manifest, "small.yaml") == there / "small.yaml"
    with pytest.raises(RunFolderError, match=r"its files are named from .*there, where it was started"):
        read_begun(tmp_path, None)
    monkeypatch.chdir(there)
    assert file_of(manifest, "small.yaml") == Path("small.yaml")
    assert read_begun(tmp_path, None).selection.paths == ("small.yaml",)


def test_a_program_is_named_again_and_another_one_is_refused(tmp_path: Path) -> None:
    ran = run([write_scenario(tmp_path)], tmp_path, command=behave("honest"))
    with pytest.raises(RunFolderError, match="give the same one again"):
        resume_run(ran.folder, None, Going())
    with pytest.raises(RunFolderError, match=r"scenarios\.small\.agent\.sha256 is not what it was"):
        resume_run(ran.folder, behave("crash"), Going())
    assert resume_run(ran.folder, behave("honest"), Going())[0].exit_code == ran.result.exit_code


def test_the_record_of_results_ends_in_the_last_whole_line_wherever_it_was_torn(tmp_path: Path) -> None:
    path = journal(tmp_path, *map(result, (1, 2, 3)))
    data = path.read_bytes()
    ends = [place for place, byte in enumerate(data) if byte == ord("\n")]
    near = {place + step for place in ends for step in (-1, 0, 1, 2)}
    for length in sorted({*range(0, len(data), 23), *near} & {*range(len(data) + 1)}):
        path.write_bytes(data[:length])
        found = read_results(tmp_path)
        assert list(found.values()) == [result(trial) for trial in range(1, data[:length].count(b"\n") + 1)]
        assert path.read_bytes() == data[: data[:length].rfind(b"\n") + 1]
        # What comes next stands on a line of its own.
        journal(tmp_path, result(9))
        assert list(read_results(tmp_path))[-1] == ("s", 9)


def test_of_two_results_of_one_trial_the_later_counts_and_a_cancelled_trial_has_none(tmp_path: Path) -> None:
    journal(tmp_path, result(1), result(2, "cancelled"), result(1, reason="later"), result(3, reason="\udcff"))
    assert read_results(tmp_path) == {("s", 1): result(1, reason="later"), ("s", 3): result(3, reason="\udcff")}


@pytest.mark.parametrize("line", ["nonsense\n", "[]\n", '{"scenario": 1}\n', "[" * 100_000 + "\n"])
def test_results_that_nobody_wrote_so_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / RESULTS).write_text(line)
    with pytest.raises(RunFolderError, match="cannot be read"):
        read_results(tmp_path)
    shutil.rmtree(tmp_path)


def test_a_run_is_gone_on_with_only_when_its_workers_have_ended_and_they_start_in_no_other(tmp_path: Path) -> None:
    path = journal(tmp_path, result(1))
    await_workers(tmp_path)
    assert hold_as_worker(tmp_path)
    with pytest.raises(RunFolderError, match="a worker of the run is still there"):
        await_workers(tmp_path, 0.1)
    path.unlink()
    journal(tmp_path, result(1))
    await_workers(tmp_path)


def invoke(*arguments: str) -> tuple[int, str]:
    ran = CliRunner().invoke(command, list(arguments))
    return ran.exit_code, ran.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("some.yaml", "--resume", "run"), "--resume takes no PATH"),
        (("--resume", "run", "--trials", "2"), "--resume takes no --trials"),
        (("--resume", "run", "--out", "runs"), "--resume takes no --out"),
        (("--resume", "run", "--agent", "x.yaml"), "--resume takes no --agent"),
        (("--resume", "/nowhere/at/all"), "there is no such run folder"),
        ((), "name a scenario"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_what_is_wrong(arguments: tuple[str, ...], said: str) -> None:
    code, output = invoke(*arguments)
    assert code == 2
    assert said in output
