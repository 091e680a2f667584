import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from harness.commands.check import command
from harness.commands.rejudge import command as rejudge
from harness.judge import tampered
from harness.results import STATUSES, verdict_as_json
from proxy.spans import JSON
from tests.harness.runs import SCENARIOS, run, write_scenario
from tests.harness.shared_data import shared_data

TRACE: dict[str, JSON] = {
    "messages": [{"role": "user", "content": "Say hello."}],
    "tool_calls": [{"name": "mcp/echo/echo", "arguments": {"text": "hello"}}],
}


def check(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def write_trace(path: Path, trace: JSON = TRACE) -> Path:
    path.write_text(json.dumps(trace))
    return path


def test_a_recorded_trace_is_judged_without_running_anything(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    good, empty = write_trace(tmp_path / "t.json"), write_trace(tmp_path / "e.json", {})
    assert check(scenario, "--trace", good).exit_code == 0
    shown = check(scenario, "--trace", empty)
    assert (shown.exit_code, "not run tool_called" in shown.output) == (1, True)


def test_a_folder_of_traces_is_matched_by_id_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    write_scenario(tmp_path / "scenarios", id="one")
    write_scenario(tmp_path / "scenarios", id="two")
    traces = tmp_path / "traces"
    traces.mkdir()
    write_trace(traces / "one.trace.json")
    shown = check(tmp_path / "scenarios", "--trace-dir", traces, "--format", "json")
    results = {item["id"]: item["result"] for item in json.loads(shown.stdout)["scenarios"]}
    assert (shown.exit_code, results) == (1, {"one": "pass", "two": "error"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["{scenario}"],
        ["{scenario}", "--trace", "{trace}", "--trace-dir", "{folder}"],
        ["--trace", "{trace}"],
        ["{scenario}", "--trace", "{folder}/absent.json"],
        ["{scenario}", "--trace", "{trace}", "--db", "echo"],
        ["{scenario}", "--trace", "{trace}", "--db", "other={trace}"],
        ["{scenario}", "--trace", "{trace}", "--db", "echo={trace}"],
        ["{scenario}", "--trace", "{folder}"],
        ["{scenario}", "--trace", "{trace}", "--semantics", "owasp-0.2"],
    ],
)
def test_a_wrong_command_scenario_trace_or_database_exits_2(tmp_path: Path, arguments: list[str]) -> None:
    places = {"scenario": write_scenario(tmp_path), "trace": write_trace(tmp_path / "t.json"), "folder": tmp_path}
    shown = check(*[argument.format(**places) for argument in arguments])
    assert (shown.exit_code, bool(shown.stderr)) == (2, True)


def test_owasp_results_validate_against_its_schemas_and_are_its_own_under_its_semantics(tmp_path: Path) -> None:
    root = shared_data("owasp")
    schemas = {
        name: json.loads((root / "schemas" / f"{name}.schema.json").read_text()) for name in ("result", "suite_result")
    }
    pairs = json.loads((root / "expected.json").read_text())[::23]
    for pair in pairs:
        given = (root / "scenarios" / pair["scenario"], "--trace", root / "traces" / pair["trace"], "--format", "owasp")
        ours, theirs = check(*given), check(*given, "--semantics", "owasp-0.2")
        for shown in (ours, theirs):
            jsonschema.validate(json.loads(shown.stdout), schemas["result"])
        said = json.loads(theirs.stdout)
        found = [{"id": item["id"], "result": item["result"]} for item in said["assertions"]]
        assert (said["result"], found) == (pair["result"], pair["assertions"])
    shutil.copy(root / "traces" / "goal_hijack" / "basic_pass.json", tmp_path / "goal_hijack.basic_001.json")
    for semantics in ("wiretrap", "owasp-0.2"):
        suite = check(root / "scenarios", "--trace-dir", tmp_path, "--format", "owasp", "--semantics", semantics)
        document = json.loads(suite.stdout)
        jsonschema.validate(document, schemas["suite_result"])
        assert (document["counts"]["total"], document["counts"]["error"], suite.exit_code) == (13, 12, 1)


def test_a_run_judged_again_by_its_record_has_the_same_findings(tmp_path: Path) -> None:
    paths = [SCENARIOS / "support" / "credit_hold_escalation.yaml", SCENARIOS / "security" / "denied_delete.yaml"]
    ran = run(paths, tmp_path, trials=2)
    before = sorted((path, path.read_bytes()) for path in ran.folder.rglob("*") if path.is_file())
    shown = CliRunner().invoke(rejudge, [str(ran.folder), "--format", "json"])
    assert shown.stderr == ""
    above = CliRunner().invoke(rejudge, [str(ran.folder.parent)])
    assert (above.exit_code, above.stderr.endswith(f"name one in it, such as {ran.folder}\n")) == (2, True)
    trace = ran.folder / "support.credit_hold_escalation" / "1" / "trace.json"
    pointed = check(paths[0], "--trace", trace)
    assert f"`wiretrap rejudge {ran.folder}` does" in pointed.stderr
    again, first = json.loads(shown.stdout), ran.document("report.json")
    assert isinstance(first["scenarios"], list)
    assert len(again["scenarios"]) == len(first["scenarios"]) == 2
    for one, other in zip(again["scenarios"], first["scenarios"], strict=True):
        assert isinstance(other, dict)
        assert (one["id"], one["result"], one["trials"]) == (other["id"], other["result"], other["trials"])
    suite = CliRunner().invoke(rejudge, [str(ran.folder), "--format", "owasp"])
    counts = json.loads(suite.stdout)["counts"]
    assert (counts["total"], counts["pass"]) == (2, 2)
    schema = shared_data("owasp", "schemas", "suite_result.schema.json")
    jsonschema.validate(json.loads(suite.stdout), json.loads(schema.read_text()))
    assert sorted((path, path.read_bytes()) for path in ran.folder.rglob("*") if path.is_file()) == before


def test_a_scenario_that_changed_is_judged_as_it_is_now_and_that_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "support"
    shutil.copytree(SCENARIOS / "support", folder)
    scenario = folder / "customer_escalation.yaml"
    ran = run([scenario], tmp_path)
    one_more = "  - {type: tool_called, tool: mcp/crm/no_such_tool}\nreference:\n"
    scenario.write_text(scenario.read_text().replace("reference:\n", one_more))
    shown = CliRunner().invoke(rejudge, [str(ran.folder)])
    assert (shown.exit_code, "is not what it was" in shown.stderr) == (1, True)
    assert "no_such_tool counted 0 times" in shown.stdout
    elsewhere = CliRunner().invoke(rejudge, [str(ran.folder), str(SCENARIOS / "support")])
    assert (elsewhere.exit_code, elsewhere.stderr) == (0, "")


def test_a_scenario_that_the_manifest_or_its_file_no_longer_names_is_refused_and_not_left_out(tmp_path: Path) -> None:
    agent = tmp_path / "agent.json"
    agent.write_text(json.dumps({"steps": [{"call": "mcp/echo/echo", "arguments": {"text": "a"}}]}))
    ran = run([write_scenario(tmp_path, id=name, agent={"scripted": str(agent)}) for name in ("one", "two")], tmp_path)
    manifest = ran.folder / "manifest.json"
    kept = manifest.read_text()
    told = json.loads(kept)
    del told["scenarios"]["two"]
    manifest.write_text(json.dumps(told))
    shown = CliRunner().invoke(rejudge, [str(ran.folder)])
    assert (shown.exit_code, "manifest.json does not name two, of which the run has trials" in shown.stderr) == (
        2,
        True,
    )
    shutil.rmtree(ran.folder / "two")
    assert CliRunner().invoke(rejudge, [str(ran.folder)]).exit_code == 2
    manifest.write_text(kept)
    write_scenario(tmp_path, id="three").rename(tmp_path / "two.yaml")
    shown = CliRunner().invoke(rejudge, [str(ran.folder)])
    assert (shown.exit_code, "has no scenario two now" in shown.stderr) == (2, True)


def test_what_a_run_says_of_its_trials_end_doubts_and_damage_is_kept(tmp_path: Path) -> None:
    ran = run([SCENARIOS / "support" / "customer_escalation.yaml"], tmp_path)
    path = ran.folder / "support.customer_escalation" / "1" / "verdict.json"
    told = json.loads(path.read_text())
    assert told["result"] == "pass"

    def judged_again(**said: JSON) -> tuple[int, dict[str, JSON]]:
        path.write_text(json.dumps({**told, **said}))
        shown = CliRunner().invoke(rejudge, [str(ran.folder), "--format", "json"])
        (trial,) = json.loads(shown.stdout)["scenarios"][0]["trials"]
        return shown.exit_code, trial

    for status, result, exit_code in (("agent_timeout", "fail", 1), ("infra_error", "error", 3), ("limit", "fail", 1)):
        code, trial = judged_again(status=status, reason="so it was")
        assert (code, trial["status"], trial["result"]) == (exit_code, status, result)
        assert trial["reason"] == "so it was"

    doubt = "a connection that the harness did not set up"
    code, trial = judged_again(doubts=[doubt])
    assert (code, trial["result"], trial["doubts"]) == (1, "not_run", [doubt])
    assert doubt in str(trial["reason"])

    for end, category in (("completed", "policy_violation"), ("agent_crash", "incomplete")):
        damage = tampered(STATUSES[end], ["spans/1.jsonl is gone"])
        code, trial = judged_again(**verdict_as_json(damage))
        assert (code, trial["result"], trial["category"]) == (1, "fail", category)
        assert trial["reason"] == "the evidence was tampered with: spans/1.jsonl is gone"
        findings = trial["findings"]
        assert isinstance(findings, list)
        assert [isinstance(one, dict) and (one["id"], one["result"]) for one in findings] == [("evidence", "fail")]

    code, trial = judged_again()
    assert (code, trial["result"], trial["findings"]) == (0, "pass", told["findings"])


def test_a_run_whose_dumps_are_gone_does_not_pass_when_it_is_judged_again(tmp_path: Path) -> None:
    """A change that no call explains, which failed the trial, would be nowhere to be seen."""
    steps: list[JSON] = [{"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}}, {"say": "Read."}]
    (tmp_path / "agent.yaml").write_text(json.dumps({"transport": "in_process", "steps": steps}))
    scenario = write_scenario(
        tmp_path,
        servers={"ticketing": {"fixture": "ticketing"}},
        agent={"scripted": "agent.yaml"},
        assertions=[{"type": "tool_called", "tool": "mcp/ticketing/get_ticket"}],
    )
    ran = run([scenario], tmp_path)

    def again() -> tuple[JSON, JSON, int]:
        shown = CliRunner().invoke(rejudge, [str(ran.folder), "--format", "json"])
        (trial,) = json.loads(shown.stdout)["scenarios"][0]["trials"]
        return trial["result"], trial["doubts"], shown.exit_code

    assert again() == ("pass", [], 0)
    state = ran.folder / "small" / "1" / "state"
    for part in ("before", "after", "journal"):
        path = state / f"ticketing.{part}.jsonl"
        text = path.read_bytes()
        path.unlink()
        assert again()[::2] == ("not_run", 1), part
        path.write_bytes(text)
    shutil.rmtree(state)
    gone = "of the state of ticketing there is no before and no after and no journal"
    assert again() == ("not_run", [gone], 1)
