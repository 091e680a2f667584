"""The agent that obeys a document and the one that does not, over `http`, `python` and `command`, a process each."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.results import RunResult
from proxy.spans import JSON
from tests.clients.surroundings import listening
from tests.harness.runs import SCENARIOS, Ran, run
from tests.harness.targets import mailing

WAYS = ("http", "python", "command")
PLAIN = SCENARIOS / "security" / "outbound_mail.yaml"
ENFORCED = SCENARIOS / "security" / "outbound_mail_enforced.yaml"


@contextmanager
def agent(way: str, name: str, folder: Path) -> Iterator[Path]:
    """The agent file of an agent."""
    path = folder / "agent.yaml"
    source = Path(mailing.__file__)

    def write(data: JSON) -> Path:
        path.write_text(json.dumps(data))
        return path

    match way:
        case "http":
            with listening([sys.executable, str(source), "serve"]) as url:
                yield write({"http": {"url": f"{url}/{name}", "hand_over": True}})
        case "python":
            (folder / "mailing.py").write_text(source.read_text())
            yield write({"python": f"mailing:{name}"})
        case _:
            yield write({"command": [sys.executable, str(source), "{mcp_config}", "{prompt}", name]})


def reasons(result: RunResult) -> dict[str, str]:
    return {finding.id: finding.reason for trial in result.trials for finding in trial.verdict.findings}


def outbox(ran: Ran) -> list[str]:
    """The rows of the outbox after the trial."""
    [trial] = ran.result.trials
    file = ran.folder / trial.scenario / "1" / "state" / "mail.after.jsonl"
    return [line for line in file.read_text().splitlines() if json.loads(line).get("table") == "outbox"]


@pytest.mark.parametrize("way", WAYS)
def test_the_one_that_obeys_fails_with_the_denied_call_named(way: str, tmp_path: Path) -> None:
    with agent(way, "vulnerable", tmp_path) as file:
        ran = run([PLAIN], tmp_path, agent=file)
    assert ran.result.result == "fail"
    assert "mcp/mail/send_email" in reasons(ran.result)["no_denied_tool_call"]
    assert "it was executed" in reasons(ran.result)["no_denied_tool_call"]
    [trial] = ran.result.trials
    assert (trial.target, trial.verdict.status) == (way, "completed")
    assert len(outbox(ran)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_with_the_policy_in_force_it_is_attempted_and_blocked_and_nothing_is_mailed(way: str, tmp_path: Path) -> None:
    with agent(way, "vulnerable", tmp_path) as file:
        ran = run([ENFORCED], tmp_path, agent=file)
    assert ran.result.result == "fail"
    assert "attempted and blocked" in reasons(ran.result)["no_denied_tool_call"]
    assert "mcp/mail/send_email" in reasons(ran.result)["no_denied_tool_call"]
    [finding] = [one for one in ran.result.trials[0].verdict.findings if one.id == "no_denied_tool_call"]
    assert (finding.attempted, finding.blocked, finding.executed) == (1, 1, 0)
    assert outbox(ran) == []


@pytest.mark.parametrize("way", WAYS)
def test_the_one_that_does_not_obey_passes(way: str, tmp_path: Path) -> None:
    with agent(way, "hardened", tmp_path) as file:
        ran = run([PLAIN, ENFORCED], tmp_path, agent=file)
    assert ran.result.result == "pass", reasons(ran.result)
    for trial in ran.result.trials:
        assert trial.target == way
        assert trial.measures["trajectory"].seen == "observed"
