import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from harness.commands.check import command as check
from harness.commands.import_runs import command
from harness.importing.arena import read_arena
from harness.tracefile import load_trace
from tests.harness.runs import SCENARIOS
from tests.harness.shared_data import shared_data


def imported(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_every_arena_run_becomes_a_trace_and_the_ticket_table_that_its_grade_tells(tmp_path: Path) -> None:
    root = shared_data("arena")
    runs = json.loads((root / "expected.json").read_text())["runs"]
    assert imported("agent-arena", *[root / run["trace_file"] for run in runs], "--out", tmp_path).exit_code == 0
    for run in runs:
        name = run["trace_file"].removesuffix(".jsonl")
        trace = load_trace(tmp_path / f"{name}.trace.json")
        metrics = run["metrics"]
        assert len(trace.tool_calls) == metrics["num_tool_calls"] - metrics["num_delegations"]
        with closing(sqlite3.connect(tmp_path / f"{name}.ticketing.db")) as database:
            rows = database.execute("select status from tickets").fetchall()
        assert rows == [(metrics["db_status"],)]
        kinds = [event.type for event in trace.events]
        assert kinds.count("handoff") == metrics["num_handoffs"]
        assert kinds.count("delegation") == metrics["num_workers_invoked"]
        assert kinds.count("model_call") == metrics["num_llm_calls"]


@given(st.lists(st.sampled_from("abcx"), min_size=4, max_size=4))
def test_events_that_are_each_others_parents_end_the_search_for_their_agent(parents: list[str]) -> None:
    kinds = ("run_start", "llm_call", "tool_call", "agent_start")
    lines = [
        {"event_id": own, "event_type": kind, "payload": {"task_prompt": "CUST-003"}, "parent_event_id": parent}
        for own, kind, parent in zip("abcd", kinds, parents, strict=True)
    ]
    [run] = read_arena("\n".join(map(json.dumps, lines)), "run", "run.jsonl")
    assert [call.agent for call in run.trace.tool_calls] == ["agent"]


@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_a_place_where_no_folder_can_be_made_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").touch()
    told = imported("owasp", __file__, "--out", tmp_path / place)
    assert told.exit_code == 2
    assert str(tmp_path / place) in told.stderr


def test_an_imported_run_is_judged_by_a_scenario_of_ours(tmp_path: Path) -> None:
    root = shared_data("arena")
    scenario = SCENARIOS / "support" / "credit_hold_escalation.yaml"
    for name, state in (
        ("trace_single_agent_gemini_task_02_20260627_073531", "pass"),
        ("trace_peer_to_peer_gemini_task_02_20260627_073858", "fail"),
    ):
        assert imported("agent-arena", root / f"{name}.jsonl", "--out", tmp_path).exit_code == 0
        place = tmp_path / f"{name}.trace.json"
        shown = CliRunner().invoke(
            check,
            [
                str(scenario),
                "--trace",
                str(place),
                "--db",
                f"ticketing={tmp_path / name}.ticketing.db",
                "--format",
                "json",
            ],
        )
        (trial,) = json.loads(shown.stdout)["scenarios"][0]["trials"]
        found = [(finding["id"], finding["result"]) for finding in trial["findings"]]
        assert ("state", state) in found
        assert found[0] == ("tool_called", "pass")


def test_agent_mark_results_and_owasp_traces_become_traces(tmp_path: Path) -> None:
    mark = shared_data("agent-mark", "synthetic.json")
    assert imported("agent-mark", mark, "--out", tmp_path).exit_code == 0
    runs = json.loads(mark.read_text())
    for run in runs:
        trace = load_trace(tmp_path / f"{run['id']}.trace.json")
        assert [call.name for call in trace.tool_calls] == [call["name"] for call in run["trajectory"]["tool_calls"]]
    owasp = shared_data("owasp", "traces", "denied_tool_call.json")
    assert imported("owasp", owasp, "--out", tmp_path).exit_code == 0
    assert load_trace(tmp_path / "denied_tool_call.trace.json").tool_calls == load_trace(owasp).tool_calls


def test_what_is_not_of_the_format_or_there_already_exits_2(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for text, form in (
        ("[]", "agent-mark"),
        ("{}", "agent-mark"),
        ("[]", "owasp"),
        ("{", "owasp"),
        ("", "agent-arena"),
    ):
        file.write_text(text)
        shown = imported(form, file, "--out", tmp_path)
        assert (shown.exit_code, "x.json" in shown.stderr) == (2, True)
    file.write_text('{"messages": []}')
    assert imported("owasp", file, "--out", tmp_path / "new").exit_code == 0
    assert imported("owasp", file, "--out", tmp_path / "new").exit_code == 2


def test_check_grades_agent_arenas_runs_by_its_own_rules_without_a_scenario() -> None:
    root = shared_data("arena")
    shown = CliRunner().invoke(check, ["--semantics", "agent-arena", "--trace-dir", str(root), "--format", "json"])
    assert shown.exit_code == 1
    told = {item["id"]: item["trials"][0] for item in json.loads(shown.stdout)["scenarios"]}
    for run in json.loads((root / "expected.json").read_text())["runs"]:
        trial = told[run["trace_file"].removesuffix(".jsonl")]
        assert trial["result"] == ("pass" if run["passed"] else "fail")
        assert trial["findings"][0]["measures"]["score"] == run["score"]
    assert CliRunner().invoke(check, ["x.yaml", "--semantics", "agent-arena", "--trace-dir", str(root)]).exit_code == 2


RUNS = {
    "agent-arena": '{"event_id": "1", "timestamp": "x", "event_type": "run_start", "payload": {"task_prompt": "x"}}\n',
    "agent-mark": '{"prompt": "x", "tool_calls": [{"name": "A", "args": {}}], "final_response": "x"}',
    "owasp": '{"messages": [], "tool_calls": [{"name": "send", "arguments": {}}], "events": []}',
}
OTHERS = ('{"a":1}', "{}", "[]", "[1]", "1", "null", '{"messages": 1}', '{"tool_calls": {}}', '{"tool_calls": []')


@pytest.mark.parametrize("form", RUNS)
def test_what_is_of_another_format_is_refused_and_nothing_is_written(form: str, tmp_path: Path) -> None:
    for place, text in enumerate((*(RUNS[other] for other in RUNS if other != form), *OTHERS)):
        file = tmp_path / f"{place}.json"
        file.write_text(text)
        result = imported(form, file, "--out", tmp_path / "out")
        assert (text, result.exit_code) == (text, 2)
        assert str(file) in result.stderr
    assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "own.json").write_text(RUNS[form])
    assert imported(form, tmp_path / "own.json", "--out", tmp_path / "out").exit_code == 0


def test_every_shared_file_is_of_one_format_alone(tmp_path: Path) -> None:
    files = {
        "agent-arena": sorted(shared_data("arena").glob("trace_*.jsonl")),
        "agent-mark": [shared_data("agent-mark") / "synthetic.json"],
        "owasp": sorted(shared_data("owasp").glob("traces/*/*.json")),
    }
    for own, paths in files.items():
        for path in paths:
            for form in files:
                result = imported(form, path, "--out", tmp_path / form / path.stem)
                assert (path.name, form, result.exit_code) == (path.name, form, 0 if form == own else 2)


def test_a_run_of_the_owasp_harness_is_judged_by_its_scenario_under_that_ones_id(tmp_path: Path) -> None:
    root = shared_data("owasp")
    run = root / "traces" / "goal_hijack" / "delete_cloud_files_001_pass.json"
    assert imported("owasp", run, "--name", "goal_hijack.delete_cloud_files_001", "--out", tmp_path).exit_code == 0
    words = [str(root / "scenarios" / "goal_hijack" / "delete_cloud_files_001.yaml"), "--trace-dir", str(tmp_path)]
    shown = CliRunner().invoke(check, words)
    assert "PASS" in shown.stdout, shown.output
    other = CliRunner().invoke(check, [words[0], "--trace-dir", str(root)])
    assert "goal_hijack.delete_cloud_files_001.json or .trace.json" in other.stdout
    assert imported("owasp", run, run, "--name", "x", "--out", tmp_path).exit_code == 2


def test_the_tasks_of_agent_marks_runs_are_scenarios_beside_their_traces(tmp_path: Path) -> None:
    assert imported("agent-mark", shared_data("agent-mark") / "synthetic.json", "--out", tmp_path).exit_code == 0
    shown = CliRunner().invoke(check, [str(tmp_path), "--trace-dir", str(tmp_path), "--format", "json"])
    scenarios = json.loads(shown.stdout)["scenarios"]
    assert len(scenarios) == 5
    for scenario in scenarios:
        (trial,) = scenario["trials"]
        assert trial["status"] == "completed"
        assert {finding["id"] for finding in trial["findings"]} >= {"tool_calls", "judged"}
