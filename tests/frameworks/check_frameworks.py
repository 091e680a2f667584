"""Agents of three frameworks, each made by its own package, behind the proxy and judged."""

import json
from pathlib import Path

import pytest

from harness.results import TrialResult
from proxy.spans import JSON
from tests.clients.surroundings import need
from tests.harness.runs import run, write_scenario
from tests.peers.places import program

AGENTS = Path(__file__).parent / "agents"
PEERS = {"openai-agents": "openai_agents", "langchain": "langchain", "pydantic-ai": "pydantic_ai"}
SERVERS: JSON = {"ticketing": {"fixture": "ticketing", "trust": "internal"}}
ASSERTIONS: list[JSON] = [
    {"type": "tool_called", "tool": "mcp/ticketing/get_ticket"},
    {"type": "state_unchanged"},
]


def judged(framework: str, folder: Path) -> tuple[TrialResult, Path]:
    need(PEERS[framework])
    for file in AGENTS.glob("*.py"):
        (folder / file.name).write_text(file.read_text())
    agent = folder / "agent.yaml"
    function = f"with_{PEERS[framework]}:build"
    agent.write_text(
        json.dumps({framework: {"function": function, "interpreter": program(PEERS[framework], "python")}})
    )
    task: JSON = {"user_message": "Is ticket 1 open?"}
    scenario = write_scenario(folder, servers=SERVERS, assertions=ASSERTIONS, input=task)
    ran = run([scenario], folder, agent=agent)
    [trial] = ran.result.trials
    return trial, ran.folder / "small" / "1"


@pytest.mark.parametrize("framework", PEERS)
def test_an_agent_of_a_framework_is_judged_by_what_crossed_the_wire(framework: str, tmp_path: Path) -> None:
    trial, place = judged(framework, tmp_path)
    assert trial.verdict.result == "pass", (trial.verdict, (place / "agent.err").read_text())
    assert (place / "agent.out").read_text() == "Ticket 1 is open."
    assert trial.target == framework
    assert (trial.measures["trajectory"].seen, trial.measures["trajectory"].value) == ("observed", 1)
    tokens = trial.measures["tokens"]
    assert tokens.seen == "derived"
    assert tokens.value is not None
    # Each names the same model, by which its tokens have a price.
    cost = trial.measures["cost"]
    assert (cost.seen, (cost.value or 0) > 0) == ("derived", True)
    if framework == "langchain":
        assert tokens.value == 26
    if framework == "openai-agents":
        # Three calls of the model, 13 tokens each; those from the cache are among them, and not counted twice.
        assert tokens.value == 39
        handovers = trial.measures["handovers"]
        assert (handovers.seen, handovers.value) == ("derived", 1)
