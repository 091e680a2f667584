import hashlib
import json
import os
import re
import select
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from harness.commands.run import command
from harness.targets.proxied import wiretrap_command
from proxy.spans import JSON
from tests.harness.runs import ECHOED, SCENARIOS, SERVER, behave, marked, run, write_scenario

DIRECT: JSON = {"transport": "in_process", "steps": [{"say": "All done."}]}


def write_agent(folder: Path, agent: JSON, name: str = "agent.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(agent))
    return path


def wiretrap(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [*wiretrap_command(), "run", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


def refused(*arguments: str) -> str:
    """What `wiretrap run` says, in this process, of what it does not even begin."""
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2, done.output
    return done.stderr


def ticketing(folder: Path, agent: JSON, **fields: JSON) -> Path:
    """A scenario over the ticketing fixture in this process's likeness: nothing is started."""
    given: dict[str, JSON] = {
        "id": "tickets",
        "servers": {"ticketing": {"fixture": "ticketing", "trust": "internal"}},
        "assertions": [{"type": "tool_called", "tool": "mcp/ticketing/get_ticket"}],
        "agent": {"scripted": str(write_agent(folder, agent))},
        **fields,
    }
    return write_scenario(folder, **given)


def call(tool: str, **more: JSON) -> dict[str, JSON]:
    return {"call": f"mcp/ticketing/{tool}", **more}


def direct(*steps: JSON) -> JSON:
    return {"transport": "in_process", "steps": list(steps)}


GET: JSON = {"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}}


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


def test_the_exit_code_is_0_when_all_pass_and_the_table_says_where_the_folder_is(tmp_path: Path) -> None:
    done = wiretrap(str(ticketing(tmp_path, direct(GET))), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "PASS" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Run folder: runs/" in done.stdout
    assert done.stderr == ""


def test_the_exit_code_is_1_and_the_table_says_why_when_one_does_not_pass(tmp_path: Path) -> None:
    done = wiretrap(str(ticketing(tmp_path, DIRECT)), "--trials", "2", cwd=tmp_path)
    assert done.returncode == 1
    assert "mcp/ticketing/get_ticket" in done.stdout
    assert "0/2 (0 %)" in done.stdout


def test_every_error_of_every_scenario_is_printed_and_the_exit_code_is_2(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    write_scenario(bad, id="a", nonsense=1)
    write_scenario(bad, id="b", category="none", title=None)
    done = wiretrap(str(bad), "--command", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert "category" in done.stderr
    assert "title" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--command", "no-such-program"], "no-such-program"),
        (["--command", "'unclosed"], "--command"),
        (["--command", " "], "--command"),
        (["--command", "true", "--agent", "x.yaml"], "not both"),
        (["--agent", "absent.yaml"], "absent.yaml"),
        (["--trials", "0"], "--trials"),
        (["--otlp", "ftp://localhost"], "--otlp"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(str(ticketing(tmp_path, direct(GET))), *arguments)


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ({"echo": {"url": "https://example.org/mcp"}}, "only a fixture can be run in_process"),
        ({"echo": {"fixture": "nonesuch"}}, "nonesuch"),
        ({"echo": SERVER}, "in_process"),
        ({"ticketing": {"fixture": "ticketing", "seed": "wrong.yaml"}}, "no_such_table"),
    ],
)
def test_servers_that_cannot_be_run_exit_2_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: JSON, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_agent(tmp_path, {"no_such_table": [{"id": 1}]}, "wrong.yaml")
    path = write_scenario(tmp_path, servers=servers, assertions=[{"type": "no_denied_tool_call"}])
    assert said in refused(str(path), "--agent", str(write_agent(tmp_path, DIRECT)))
    assert not (tmp_path / "runs").exists()


def test_a_scenario_without_an_agent_exits_2_and_says_how_to_give_one(tmp_path: Path) -> None:
    assert "--agent, --command or --profile" in refused(str(write_scenario(tmp_path)))


def test_a_run_without_a_valid_trial_exits_3(tmp_path: Path) -> None:
    servers: JSON = {"echo": {"command": ["no-such-server"], "trust": "internal"}}
    done = wiretrap(str(write_scenario(tmp_path, servers=servers)), "--command", "true", cwd=tmp_path)
    assert done.returncode == 3
    assert "no-such-server" in done.stdout


def test_an_output_folder_that_cannot_be_made_exits_2(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = wiretrap(str(ticketing(tmp_path, direct(GET))), "--out", "taken", cwd=tmp_path)
    assert done.returncode == 2
    assert "--out" in done.stderr


def test_a_terminal_of_few_characters_gets_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    change = call("update_ticket", arguments={"ticket_id": 1, "status": "closed"})
    path = ticketing(tmp_path, direct(change), assertions=[{"type": "state_unchanged"}])
    done = wiretrap(str(path), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert r"'open' \u2192 'closed'" in done.stdout


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_a_whole_report_and_no_process_and_exits_130(tmp_path: Path, times: int) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    started = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    mark = {"TEST_MARK": str(tmp_path)}
    command = " ".join(behave("endless"))
    process = subprocess.Popen(
        [
            *wiretrap_command(),
            "run",
            str(write_scenario(tmp_path)),
            "--trials",
            "3",
            "--jobs",
            "2",
            "--command",
            command,
        ],
        cwd=tmp_path,
        env={**os.environ, **mark, "STARTED": str(fifo)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    poll = select.poll()
    poll.register(started, select.POLLIN)
    assert poll.poll(60_000), "no agent started"
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(started)
    assert process.returncode == 130, err
    assert marked(mark) == []
    assert "cancelled" in out
    assert "Go on with it: wiretrap run --resume " in out
    (folder,) = (tmp_path / "runs").iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert report["cancelled"] is True
    (scenario,) = report["scenarios"]
    assert [trial["status"] for trial in scenario["trials"]] == ["cancelled"] * 3
    assert ElementTree.parse(folder / "junit.xml").getroot().get("errors") == "1"
    assert json.loads((folder / "manifest.json").read_text())["ended_at"] is not None


def test_a_run_that_is_killed_takes_its_agents_with_it(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    started = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    mark = {"TEST_MARK": str(tmp_path)}
    process = subprocess.Popen(
        [*wiretrap_command(), "run", str(write_scenario(tmp_path)), "--command", " ".join(behave("endless"))],
        cwd=tmp_path,
        env={**os.environ, **mark, "STARTED": str(fifo)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    poll = select.poll()
    poll.register(started, select.POLLIN)
    assert poll.poll(60_000), "no agent started"
    os.close(started)
    left = [int(found.split()[0]) for found in marked(mark) if int(found.split()[0]) != process.pid]
    assert left
    process.kill()
    process.wait()
    for pid in left:
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            assert poll.poll(60_000), f"{pid} lives on"
            os.close(descriptor)
    assert marked(mark) == []


def test_a_slip_in_the_name_of_a_forbidden_tool_of_any_server_is_never_a_pass(tmp_path: Path) -> None:
    agent = tmp_path / "agent.yaml"
    agent.write_text(json.dumps({"steps": [{"call": "mcp/echo/echo"}]}))
    slip: JSON = [*ECHOED, {"type": "tool_not_called", "tool": "mcp/echo/ehco"}]
    ran = run([write_scenario(tmp_path, assertions=slip)], tmp_path, agent=agent)
    (trial,) = ran.result.trials
    assert trial.verdict.result == "not_run"
    assert "the server 'echo' offers no tool 'ehco'; did you mean echo?" in trial.verdict.reason
    hides: JSON = {"rules": [{"deny": "mcp/echo/ehco", "as": "hidden"}]}
    ran = run([write_scenario(tmp_path, assertions=slip, policy=hides)], tmp_path, agent=agent)
    assert ran.result.result == "pass"


def test_reports_past_the_size_that_a_file_may_have_are_told_and_never_green(tmp_path: Path) -> None:
    path = ticketing(tmp_path, direct(GET))
    program = f"ulimit -f 1; exec {' '.join(wiretrap_command())} run {path}"
    # Not measured: the coverage tool's own file would be past the size too, and it says so with a traceback.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode not in (0, 2), done.stdout
    assert "wiretrap: " in done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_ctrl_c_leaves_no_private_folder(tmp_path: Path) -> None:
    fifo, private = tmp_path / "started", tmp_path / "private"
    os.mkfifo(fifo)
    private.mkdir()
    started = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    command = [*wiretrap_command(), "run", str(write_scenario(tmp_path)), "--command", " ".join(behave("endless"))]
    environment = {**os.environ, "STARTED": str(fifo), "TMPDIR": str(private)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    poll = select.poll()
    poll.register(started, select.POLLIN)
    assert poll.poll(60_000), "no agent started"
    assert list(private.iterdir())
    for _ in range(2):
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    os.close(started)
    assert list(private.iterdir()) == []


def test_names_with_control_characters_are_shown_as_escapes(tmp_path: Path) -> None:
    done = wiretrap("no\x1b[31m\u202efile.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "no\\x1b[31m\\u202efile.yaml: there is no such file" in done.stderr
