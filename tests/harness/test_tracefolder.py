import json
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner, Result

from harness.commands.check import command as check
from harness.commands.import_runs import command as import_runs
from harness.discovery import load_scenarios
from harness.tracefolder import Located, Whose, locate_traces
from tests.harness.shared_data import shared_data

ONE = Whose("goal_hijack.basic_001", "goal_hijack", Path("goal_hijack/basic.yaml"))


def put(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return [folder / name for name in names]


def invoked(command: Command, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", ["goal_hijack.basic_001.json", "goal_hijack.basic_001.trace.json"])
def test_a_trace_with_the_id_of_its_scenario_is_taken_without_a_word(name: str, tmp_path: Path) -> None:
    (path, *_) = put(tmp_path, name, "goal_hijack/basic_001_pass.json")
    assert locate_traces(tmp_path, [ONE]) == {ONE.id: Located(path, "")}


@pytest.mark.parametrize(
    "name",
    [
        "goal_hijack/basic_pass.json",
        "goal_hijack/basic_001_pass.json",
        "goal_hijack/basic_fail.json",
        "goal_hijack/basic_001.json",
        "goal_hijack.basic_pass.trace.json",
        "goal_hijack.basic_001_fail.json",
    ],
)
def test_a_trace_with_category_and_name_is_taken_and_that_is_said(name: str, tmp_path: Path) -> None:
    (path,) = put(tmp_path, name)
    note = f"{ONE.id}: judged by {path}, which has its category and name"
    assert locate_traces(tmp_path, [ONE]) == {ONE.id: Located(path, note)}


@pytest.mark.parametrize(
    "name", ["basic_pass.json", "memory_isolation/basic_pass.json", "goal_hijack/basic_002_pass.json"]
)
def test_a_trace_of_another_category_or_name_is_not_taken(name: str, tmp_path: Path) -> None:
    put(tmp_path, name)
    assert locate_traces(tmp_path, [ONE]) == {ONE.id: Located(None, "")}


def test_the_folder_of_a_category_itself_is_one_of_traces(tmp_path: Path) -> None:
    (path,) = put(tmp_path / "goal_hijack", "basic_pass.json")
    assert locate_traces(path.parent, [ONE])[ONE.id].path == path


def test_no_trace_is_taken_where_another_may_be_the_scenarios_or_the_trace_anothers(tmp_path: Path) -> None:
    both = put(tmp_path, "goal_hijack/basic_pass.json", "goal_hijack/basic_fail.json")
    (found,) = locate_traces(tmp_path, [ONE]).values()
    assert found.path is None
    assert all(str(path) in found.note for path in both)
    both[1].unlink()
    other = Whose("goal_hijack.basic", "goal_hijack", Path("other.yaml"))
    assert [one.path for one in locate_traces(tmp_path, [ONE, other]).values()] == [None, None]


@pytest.mark.parametrize("semantics", ["wiretrap", "owasp-0.2"])
def test_the_traces_of_the_owasp_harness_are_found_as_they_lie_and_imported(semantics: str, tmp_path: Path) -> None:
    root = shared_data("owasp")
    given = ("--format", "json", "--semantics", semantics)
    lying = invoked(check, root / "scenarios", "--trace-dir", root / "traces", *given)
    traces = sorted(root.glob("traces/*/*_pass.json"))
    assert lying.stderr.count("which has its category and name") == len(traces) == 13
    assert [one["result"] for one in json.loads(lying.stdout)["scenarios"] if one["result"] == "error"] == []
    if semantics == "wiretrap":
        assert invoked(import_runs, "owasp", *traces, "--out", tmp_path).exit_code == 0
        again = invoked(check, root / "scenarios", "--trace-dir", tmp_path, *given)
        told = [
            [(one["id"], one["result"]) for one in json.loads(shown.stdout)["scenarios"]] for shown in (lying, again)
        ]
        assert told[0] == told[1]
        assert len(told[0]) == len(load_scenarios([root / "scenarios"]))
