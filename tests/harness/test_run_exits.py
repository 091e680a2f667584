"""What `wiretrap run` refuses, prints and exits with."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.targets.proxied import wiretrap_command
from proxy.spans import JSON
from tests.harness.runs import ECHOED, SERVER, run, write_scenario
from tests.harness.ticketing import DIRECT, GET, call, direct, refused, ticketing, wiretrap, write_agent


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


def test_names_with_control_characters_are_shown_as_escapes(tmp_path: Path) -> None:
    done = wiretrap("no\x1b[31m\u202efile.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "no\\x1b[31m\\u202efile.yaml: there is no such file" in done.stderr
