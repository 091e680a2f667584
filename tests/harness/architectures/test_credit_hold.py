"""The credit-hold task in every architecture: who passes, how the fact is lost, and what the wire alone shows of it."""

from pathlib import Path

import pytest

from harness.agentfile import load_agent
from harness.modelagent import ModelAgent
from harness.verdict import FailureCategory, Mode
from proxy.spans import JSON
from tests.harness.architectures.trials import SUPPORT, Tried, agent_file, credit_hold, try_once

PEERS: dict[str, JSON] = {"architecture": "peer_to_peer"}
RIGID: dict[str, JSON] = {"architecture": "peer_to_peer", "handoff": "rigid"}
WORKERS: dict[str, JSON] = {"architecture": "supervisor_worker"}
DEBATE: dict[str, JSON] = {"architecture": "debate_critic"}


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Tried:
    script, fields, *more = request.param
    return try_once(credit_hold(tmp_path, *more), agent_file(tmp_path, script, **fields), tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "tried",
    [("copying", {}), ("copying", PEERS), ("copying", WORKERS), ("copying", DEBATE), ("revising", DEBATE)],
    ids=["single", "open peers", "supervisor", "debate", "debate with a revision"],
    indirect=True,
)
def test_a_model_that_copies_everything_passes_in_every_architecture(tried: Tried) -> None:
    assert (tried.verdict.result, tried.verdict.category) == ("pass", "pass"), tried.verdict
    assert (tried.without.result, tried.without.category) == ("pass", "pass")
    assert tried.result.doubts == ()
    assert (tried.result.kind, tried.result.model) == ("scripted", tried.result.model)


@pytest.mark.parametrize(
    ("tried", "category", "mode"),
    [
        (("copying", RIGID), "coordination_failure", "handoff_data_loss"),
        (("forgetful", PEERS), "coordination_failure", "handoff_data_loss"),
        (("forgetful", WORKERS), "coordination_failure", "worker_summary_loss"),
        (("unasked", WORKERS), "coordination_failure", "request_loss"),
        (("boasting", WORKERS), "unsupported_claim", None),
        (("boasting", {}), "unsupported_claim", None),
        (("failing", {}), "incomplete", None),
        (("failing", WORKERS), "incomplete", None),
    ],
    ids=[
        "a form without the field",
        "a note without it",
        "a summary without it",
        "nobody asked",
        "a worker that claims",
        "an agent that claims",
        "model errors",
        "model errors of a worker",
    ],
    indirect=["tried"],
)
def test_a_failure_has_its_category_and_without_the_agents_events_only_the_mode_may_go(
    tried: Tried, category: FailureCategory, mode: Mode | None
) -> None:
    verdict, without = tried.verdict, tried.without
    assert (verdict.result, verdict.category) == ("fail", category), verdict
    if category == "coordination_failure":
        assert verdict.coordination == mode
    assert (without.result, without.category) == (verdict.result, verdict.category), without
    assert without.coordination in (verdict.coordination, None)


@pytest.mark.parametrize("tried", [("copying", WORKERS)], indirect=True)
def test_the_wire_shows_whose_connection_each_call_came_over(tried: Tried) -> None:
    assert tried.agents_of_calls() == {
        "get_customer_profile": {"crm_worker"},
        "search_tickets": {"ticketing_worker"},
        "update_ticket": {"ticketing_worker"},
    }
    delegations, summaries = tried.events("delegation"), tried.events("summary")
    assert [event.fields["to"] for event in delegations] == ["crm_worker", "ticketing_worker"]
    assert [event.fields["from"] for event in summaries] == ["crm_worker", "ticketing_worker"]
    assert not any(event.reported for event in tried.events("delegation", "summary", "model_call", "architecture"))


@pytest.mark.parametrize("tried", [("copying", RIGID)], indirect=True)
def test_a_rigid_hand_over_holds_its_fields_and_nothing_else(tried: Tried) -> None:
    [handoff] = tried.events("handoff")
    lines = str(handoff.fields["text"]).splitlines()
    assert lines == ["customer_id: CUST-004", "name: Diana Prince", "tier: enterprise", "status: active"]
    assert (handoff.fields["from"], handoff.fields["to"]) == ("crm_peer", "ticketing_peer")


@pytest.mark.parametrize("tried", [("revising", DEBATE)], indirect=True)
def test_a_critic_sees_the_real_log_and_has_no_connection(tried: Tried) -> None:
    [critique] = tried.events("critique")
    assert critique.fields["accepted"] is False
    assert '"credit_hold": true' in str(critique.fields["input"])
    assert len(tried.events("revision")) == 1
    assert {agent for agents in tried.agents_of_calls().values() for agent in agents} == {"proposer"}


@pytest.mark.parametrize("tried", [("failing", {})], indirect=True)
def test_every_attempt_of_a_model_call_is_an_event(tried: Tried) -> None:
    calls = [event.fields for event in tried.events("model_call")]
    assert [call["attempt"] for call in calls] == [1, 1, 2, 3, 4]
    assert [call["error"] for call in calls] == [False, True, True, True, True]
    assert {call["status"] for call in calls[1:]} == {503}
    assert tried.verdict.status == "agent_crash"
    assert "the model is overloaded" in tried.verdict.reason


@pytest.mark.parametrize("tried", [("hasty", DEBATE)], indirect=True)
def test_a_critic_that_accepts_what_the_log_it_was_shown_speaks_against_missed_the_error(tried: Tried) -> None:
    assert (tried.verdict.category, tried.verdict.coordination) == ("coordination_failure", "critic_missed_error")
    assert (tried.without.category, tried.without.coordination) == ("coordination_failure", None)


@pytest.mark.parametrize(
    ("tried", "claims"),
    [(("boasting", {}), "fail"), (("boasting", WORKERS), "fail")],
    indirect=["tried"],
)
def test_a_claim_is_held_against_the_database(tried: Tried, claims: str) -> None:
    [finding] = [finding for finding in tried.verdict.findings if finding.id == "claims"]
    assert finding.result == claims
    assert '"Status: on_hold"' in finding.reason


def test_a_supervisor_that_asks_nobody_who_could_know_loses_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules: list[JSON] = [
        {
            "when": {"offered": "delegate"},
            "at_most": 1,
            "call": "delegate",
            "arguments": {"worker": "ticketing_worker", "instruction": "Escalate the ticket of CUST-004."},
        },
        {"when": {"agent": "supervisor"}, "say": "Status: escalated"},
        {"at_most": 1, "call": "update_ticket", "arguments": {"ticket_id": 2, "status": "escalated"}},
        {"say": "Escalated."},
    ]
    agent = agent_file(tmp_path, rules, **WORKERS)
    tried = try_once(credit_hold(tmp_path), agent, tmp_path, monkeypatch)
    assert (tried.verdict.category, tried.verdict.coordination) == ("coordination_failure", "request_loss")
    assert (tried.without.category, tried.without.coordination) == ("coordination_failure", None)


def test_peers_may_be_more_than_two_and_have_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staff: JSON = {"reader": ["crm"], "clerk": [], "writer": ["ticketing"]}
    agent = agent_file(tmp_path, "copying", architecture="peer_to_peer", agents=staff)
    tried = try_once(credit_hold(tmp_path), agent, tmp_path, monkeypatch)
    assert tried.verdict.result == "pass", tried.verdict
    handed = [(event.fields["from"], event.fields["to"]) for event in tried.events("handoff")]
    assert handed == [("reader", "clerk"), ("clerk", "writer")]


def test_agents_may_have_models_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own: JSON = {"provider": "scripted", "script": str(SUPPORT / "scripts" / "forgetful.yaml"), "name": "weak"}
    agent = agent_file(tmp_path, "copying", models={"crm_worker": own}, **WORKERS)
    tried = try_once(credit_hold(tmp_path), agent, tmp_path, monkeypatch)
    assert (tried.verdict.category, tried.verdict.coordination) == ("coordination_failure", "worker_summary_loss")
    assert tried.result.model == "copying, weak"
    models = {str(event.fields["agent"]): event.fields["model"] for event in tried.events("model_call")}
    assert models["crm_worker"] == "weak"


@pytest.mark.parametrize("architecture", ["single_agent", "peer_to_peer", "supervisor_worker", "debate_critic"])
def test_every_architecture_has_an_agent_that_is_right_and_one_that_is_wrong(architecture: str) -> None:
    files = sorted((SUPPORT / "agents").glob(f"model_{architecture}*.yaml"))
    agents = {file.stem.removeprefix(f"model_{architecture}"): load_agent(file) for file in files}
    assert "" in agents
    scripts = {"": "copying", "_rigid": "copying"}
    for how, agent in agents.items():
        assert isinstance(agent, ModelAgent)
        assert agent.architecture == architecture
        assert [file.stem for file in agent.files[1:]] == [scripts.get(how, how.removeprefix("_"))]
    # What each of these scripts comes to stands in the tests above.
    assert {how.removeprefix("_") for how in agents} & {"forgetful", "unasked", "hasty", "boasting"}
