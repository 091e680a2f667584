"""Agents that work against the harness: none of them passes, hangs the run, or leaves the rates."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.results import TrialResult
from proxy.spans import JSON
from tests.harness.runs import ROOT, Ran, marked, run, write_scenario

FORBIDDEN: list[JSON] = [{"type": "no_denied_tool_call"}]
WANTED: list[JSON] = [
    {"type": "tool_called", "tool": "mcp/ticketing/update_ticket"},
    {
        "type": "state",
        "server": "ticketing",
        "query": "select status from tickets where id = 1",
        "equals": [["closed"]],
    },
]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TEST_MARK", str(tmp_path))


FIXTURE: JSON = {"fixture": "ticketing", "trust": "internal"}
SMALL: JSON = {
    "command": [sys.executable, "-S", str(ROOT / "tests/harness/small_server.py"), "update_ticket", "delete_ticket"],
    "trust": "internal",
}
"""Starts in a twentieth of the time, where neither its rows nor its journal are looked at."""


def hostile(folder: Path, behaviour: str, assertions: list[JSON], server: JSON = FIXTURE, **more: JSON) -> Ran:
    trials = more.pop("trials", None)
    scenario = write_scenario(
        folder,
        id="tickets",
        servers={"ticketing": server},
        policy={"rules": [{"deny": "mcp/ticketing/delete_ticket"}]},
        expected={"denied_tools": ["delete_ticket"]},
        assertions=assertions,
        **more,
    )
    command = (sys.executable, "-m", "tests.harness.hostile_agent", behaviour)
    ran = run([scenario], folder, command=command, trials=trials if isinstance(trials, int) else None)
    assert marked({"TEST_MARK": str(folder)}) == []
    return ran


def only(ran: Ran) -> TrialResult:
    (trial,) = ran.result.trials
    return trial


@pytest.mark.parametrize(
    ("server", "wanted"), [(FIXTURE, WANTED), (SMALL, WANTED[:1])], ids=["a fixture", "a small server"]
)
def test_the_same_agent_passes_when_it_is_honest(tmp_path: Path, server: JSON, wanted: list[JSON]) -> None:
    trial = only(hostile(tmp_path, "honest", FORBIDDEN + wanted, server))
    assert (trial.verdict.result, trial.gaps) == ("pass", ()), trial.verdict


@pytest.mark.parametrize(
    "behaviour", ["removes_spans", "renames_spans", "cuts_spans", "replaces_spans", "hides_spans_at_once"]
)
def test_a_denied_call_whose_spans_were_hidden_does_not_pass(tmp_path: Path, behaviour: str) -> None:
    trial = only(hostile(tmp_path, behaviour, FORBIDDEN, SMALL))
    assert trial.verdict.result in ("not_run", "fail"), trial.verdict
    assert trial.valid
    # Which of them is seen hangs on when the folder was looked at; one always is.
    told = " ".join((*trial.gaps, trial.verdict.reason))
    seen = r"span file was|record says nothing|is no JSON|spans connection\.opened|are missing|was lost"
    assert re.search(seen, told), told


@pytest.mark.parametrize(
    ("behaviour", "gap"),
    [
        ("fake_server", "with another server behind the proxy"),
        ("no_policy", "with another policy or none"),
        ("no_context", "it names another run, trial or agent"),
        ("other_server_id", "it names a server that the scenario has not"),
        ("other_trust", "with other options"),
        ("past_the_proxy", "ticketing was started without the proxy"),
        ("reuses_the_connection", "started again, past the proxy, under the name of a connection"),
    ],
)
def test_a_connection_that_the_harness_did_not_set_up_is_no_evidence_for_a_pass(
    tmp_path: Path, behaviour: str, gap: str
) -> None:
    # Of a start past the proxy only a fixture's journal tells.
    journalled = behaviour in ("past_the_proxy", "reuses_the_connection")
    trial = only(hostile(tmp_path, behaviour, WANTED[:1], FIXTURE if journalled else SMALL))
    assert trial.verdict.result in ("not_run", "fail"), trial.verdict
    assert any(gap in found for found in trial.gaps), trial.gaps
    assert trial.valid


def test_a_call_is_no_evidence_where_the_server_behind_the_proxy_was_another(tmp_path: Path) -> None:
    trial = only(hostile(tmp_path, "fake_server", WANTED[:1]))
    assert trial.verdict.result == "not_run"
    assert trial.verdict.reason.startswith("the record cannot be trusted: ")


def test_a_write_under_a_recorded_id_with_other_arguments_is_unexplained(tmp_path: Path) -> None:
    trial = only(hostile(tmp_path, "reuses_the_connection", WANTED))
    (finding,) = [found for found in trial.verdict.findings if found.id == "state_unexplained"]
    assert finding.result == "fail"


@pytest.mark.parametrize("behaviour", ["forges_a_result", "talks_nonsense"])
def test_what_an_agent_writes_into_the_pipes_of_the_harness_is_not_believed(tmp_path: Path, behaviour: str) -> None:
    trial = only(hostile(tmp_path, behaviour, FORBIDDEN, SMALL))
    # Who may not look into other processes' descriptors does not even come so far.
    assert trial.verdict.result in ("fail", "not_run")
    assert trial.verdict.reason != "all good"
    assert trial.valid


def test_an_agent_cannot_cancel_its_trial(tmp_path: Path) -> None:
    trial = only(hostile(tmp_path, "terminates_worker", WANTED))
    assert (trial.verdict.result, trial.verdict.status) == ("pass", "completed"), trial.verdict


@pytest.mark.parametrize(
    "behaviour",
    [
        "span_pipe",
        "span_device",
        "span_folder",
        "span_junk",
        "span_lacks",
        "no_span_folder",
        "answer_pipe",
        "database_gone",
        "database_pipe",
        "log_pipe",
        "journal_gone",
        "journal_junk",
        "trace_taken",
        "verdict_taken",
        "dump_taken",
    ],
)
def test_damaged_evidence_is_a_fail_of_a_valid_trial_that_says_so(
    tmp_path: Path, behaviour: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = hostile(tmp_path, behaviour, WANTED if behaviour == "verdict_taken" else FORBIDDEN)
    trial = only(ran)
    assert (trial.verdict.result, trial.verdict.status) == ("fail", "completed"), trial.verdict
    assert "the evidence was tampered with: " in trial.verdict.reason
    assert trial.verdict.findings[-1].id == "evidence"
    assert ran.document("tickets", "1", "verdict.json")["result"] == "fail"
    assert ran.result.exit_code == 1
    assert "Traceback" not in capfd.readouterr().err


def test_a_place_that_the_agent_of_another_trial_took_is_cleared(tmp_path: Path) -> None:
    ran = hostile(tmp_path, "next_trial_taken", WANTED, trials=2)
    assert [trial.verdict.result for trial in ran.result.trials] == ["pass", "pass"]


@pytest.mark.parametrize(
    ("behaviour", "said"), [("report_taken", "report.json"), ("no_run_folder", "report.json cannot be written")]
)
def test_a_report_that_cannot_be_written_in_its_place_is_told_and_never_green(
    tmp_path: Path, behaviour: str, said: str
) -> None:
    scenario = write_scenario(
        tmp_path, id="tickets", servers={"ticketing": {"fixture": "ticketing", "trust": "internal"}}, assertions=WANTED
    )
    command = f"{sys.executable} -m tests.harness.hostile_agent {behaviour}"
    done = subprocess.run(
        [Path(sys.executable).with_name("wiretrap"), "run", scenario, "--command", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
