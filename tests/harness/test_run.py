import hashlib
import re
import stat
import sys
from pathlib import Path

import pytest

from proxy.spans import JSON
from tests.harness.runs import SCENARIOS, marked, run, write_scenario
from tests.harness.ticketing import DIRECT, GET, call, direct, ticketing, write_agent


def test_the_run_folder_has_its_layout_and_is_private(tmp_path: Path) -> None:
    ran = run([ticketing(tmp_path, direct(GET))], tmp_path)
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", ran.folder.name)
    found = {str(path.relative_to(ran.folder)): stat.S_IMODE(path.stat().st_mode) for path in ran.folder.rglob("*")}
    spans = [name for name in found if name.startswith("tickets/1/spans/ticketing.")]
    assert len(spans) == 1
    folders = {"tickets", "tickets/1", "tickets/1/spans", "tickets/1/state"}
    files = {
        *("manifest.json", "results.ndjson", "report.json", "report.md", "report.sarif", "junit.xml"),
        *("tickets/1/trace.json", "tickets/1/verdict.json"),
        *("tickets/1/agent.out", "tickets/1/agent.err", "tickets/1/spans/run.jsonl", *spans),
        *(f"tickets/1/state/ticketing.{moment}.jsonl" for moment in ("before", "after", "journal")),
    }
    assert found == {**dict.fromkeys(folders, 0o700), **dict.fromkeys(files, 0o600)}
    assert stat.S_IMODE(ran.folder.stat().st_mode) == 0o700


def test_verdict_and_report_say_the_same_of_a_trial(tmp_path: Path) -> None:
    ran = run([ticketing(tmp_path, direct(GET))], tmp_path)
    verdict = ran.document("tickets", "1", "verdict.json")
    report = ran.document("report.json")
    assert report["result"] == "pass"
    assert isinstance(report["scenarios"], list)
    assert isinstance(report["scenarios"][0], dict)
    assert report["scenarios"][0]["trials"] == [
        {k: v for k, v in verdict.items() if k not in ("schema_version", "run_id")}
    ]


def test_the_manifest_has_the_digest_of_every_file_and_where_each_result_is_from(tmp_path: Path) -> None:
    seed = write_agent(
        tmp_path,
        {"tickets": [{"id": 1, "customer_id": "C", "status": "open", "tier": "unknown", "description": "d"}]},
        "seed.yaml",
    )
    servers: JSON = {"ticketing": {"fixture": "ticketing", "seed": "seed.yaml", "trust": "internal"}}
    path = ticketing(tmp_path, direct(GET), servers=servers, policy={"default": "allow"})
    ran = run([path], tmp_path)
    manifest = ran.document("manifest.json")
    scenarios = manifest["scenarios"]
    assert isinstance(scenarios, dict)
    said = scenarios["tickets"]
    assert isinstance(said, dict)

    def digest(file: Path) -> str:
        return hashlib.sha256(file.read_bytes()).hexdigest()

    assert said["sha256"] == digest(path)
    assert said["seeds"] == {"ticketing": digest(seed)}
    agent = tmp_path / "agent.yaml"
    assert said["agent"] == {"kind": "scripted", "named_by": str(agent), "sha256": digest(agent), "program": []}
    assert said["policy_sha256"] == hashlib.sha256(b'{"default":"allow"}').hexdigest()
    assert manifest["results"] == [{"scenario": "tickets", "trial": 1, "kind": "scripted", "model": None}]
    assert manifest["record"] == {"complete": True, "incomplete": []}
    assert manifest["ended_at"] is not None


def test_databases_go_with_the_trial_unless_they_are_to_be_kept(tmp_path: Path) -> None:
    path = ticketing(tmp_path, direct(GET))
    assert run([path], tmp_path).result.trials[0].kept is None
    kept = run([path], tmp_path, keep=True).result.trials[0].kept
    assert kept is not None
    assert stat.S_IMODE(Path(kept).stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in Path(kept).iterdir()}
    assert modes["context.json"] == 0o600
    assert "ticketing.db" in modes


def test_an_agent_that_makes_no_call_does_not_pass_though_the_database_is_right(tmp_path: Path) -> None:
    right: JSON = {"type": "state", "server": "ticketing", "query": "select count(*) from tickets", "equals": [[2]]}
    ran = run([ticketing(tmp_path, DIRECT, assertions=[right])], tmp_path)
    (trial,) = ran.result.trials
    assert [finding.result for finding in trial.verdict.findings if finding.id == "state"] == ["pass"]
    assert trial.verdict.result == "not_run"
    assert ran.result.exit_code == 1


def test_a_step_that_fails_without_expect_error_is_a_crash_that_names_the_step(tmp_path: Path) -> None:
    ran = run([ticketing(tmp_path, direct(GET, call("get_ticket", arguments={"ticket_id": 99})))], tmp_path)
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status) == ("fail", "agent_crash")
    assert "step 2 (mcp/ticketing/get_ticket)" in trial.verdict.reason


def test_a_step_with_expect_error_may_fail_and_its_answer_can_be_used(tmp_path: Path) -> None:
    steps: tuple[JSON, ...] = (
        call("get_ticket", arguments={"ticket_id": 99}, expect_error=True, **{"as": "gone"}),
        GET,
        {"say": "It failed: ${gone.is_error}, ${gone.text}"},
        {"goal": "told"},
    )
    ran = run([ticketing(tmp_path, direct(*steps))], tmp_path)
    assert ran.result.result == "pass"
    trace = ran.document("tickets", "1", "trace.json")
    messages, events = trace["messages"], trace["events"]
    assert isinstance(messages, list)
    assert isinstance(events, list)
    assert isinstance(messages[-1], dict)
    assert str(messages[-1]["content"]).startswith("It failed: true, ")
    goals = [event for event in events if isinstance(event, dict) and event["type"] == "goal"]
    assert [(goal["id"], goal["reported"]) for goal in goals] == [("told", True)]


def test_a_scripted_agent_stops_at_the_limit_of_calls(tmp_path: Path) -> None:
    ran = run([ticketing(tmp_path, direct(GET, GET, GET), limits={"tool_calls": 2})], tmp_path)
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status) == ("fail", "limit")
    calls = ran.document("tickets", "1", "trace.json")["tool_calls"]
    assert isinstance(calls, list)
    assert len(calls) == 2


def test_a_server_that_ends_under_a_scripted_agent_is_an_infra_error(tmp_path: Path) -> None:
    servers: JSON = {"echo": {"command": [sys.executable, "-c", "input()"], "trust": "internal"}}
    agent = write_agent(tmp_path, {"steps": [{"call": "mcp/echo/echo"}]})
    ran = run([write_scenario(tmp_path, servers=servers)], tmp_path, agent=agent)
    (trial,) = ran.result.trials
    assert (trial.verdict.result, trial.verdict.status) == ("error", "infra_error")
    assert "echo" in trial.verdict.reason
    assert ran.result.exit_code == 3


def test_a_silent_server_runs_a_scripted_agent_into_its_time_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MARK", str(tmp_path))
    program = "import signal; signal.pause()"
    servers: JSON = {"echo": {"command": [sys.executable, "-c", program], "trust": "internal"}}
    agent = write_agent(tmp_path, {"steps": [{"call": "mcp/echo/echo"}]})
    ran = run([write_scenario(tmp_path, servers=servers, limits={"seconds": 1})], tmp_path, agent=agent)
    assert ran.result.trials[0].verdict.status == "agent_timeout"
    assert marked({"TEST_MARK": str(tmp_path)}) == []


@pytest.mark.parametrize(
    ("scenario", "agent"),
    [
        ("support/customer_escalation.yaml", "support/agents/customer_escalation_right.yaml"),
        ("support/credit_hold_escalation.yaml", "support/agents/credit_hold_right.yaml"),
        ("support/credit_hold_escalation.yaml", "support/agents/credit_hold_other_ticket.yaml"),
        ("security/denied_delete.yaml", "security/agents/denied_delete_talked_into_it.yaml"),
    ],
)
def test_a_script_leaves_the_same_trace_and_findings_over_stdio_and_in_process(
    tmp_path: Path, scenario: str, agent: str
) -> None:
    text = (SCENARIOS / agent).read_text()
    traces, findings = [], []
    for transport in ("stdio", "in_process"):
        file = tmp_path / f"{transport}.yaml"
        file.write_text(f"transport: {transport}\n{text}")
        ran = run([SCENARIOS / scenario], tmp_path, agent=file)
        (trial,) = ran.result.trials
        assert trial.folder is not None
        traces.append(comparable(ran.document(*trial.folder.split("/"), "trace.json")))
        findings.append(trial.verdict)
    assert traces[0] == traces[1]
    assert findings[0] == findings[1]


VARYING = {"started_at", "duration_ms", "time", "span_id", "connection", "mcp_transport"}


def comparable(value: JSON) -> JSON:
    """The trace apart from times, ids, mcp_transport and close reasons."""
    match value:
        case dict():
            varying = VARYING | ({"reason"} if value.get("type") == "mcp_connection_closed" else set())
            return {name: comparable(inner) for name, inner in value.items() if name not in varying}
        case list():
            return [comparable(inner) for inner in value]
        case _:
            return value
