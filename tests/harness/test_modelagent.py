import json
from pathlib import Path

import pytest

from harness.agentfile import AgentError, load_agent
from harness.modelagent import FORM, ModelAgent
from harness.selection import Selection, load_selection
from proxy.problem import ProblemError
from proxy.spans import JSON
from tests.harness.architectures.trials import SUPPORT

SERVERS = ("crm", "ticketing")
SCRIPTED: dict[str, JSON] = {"provider": "scripted", "script": "s.yaml"}


def load(folder: Path, document: JSON, servers: tuple[str, ...] | None = SERVERS) -> ModelAgent:
    (folder / "s.yaml").write_text("script: [{say: hello}]\n")
    file = folder / "a.yaml"
    file.write_text(json.dumps(document))
    agent = load_agent(file, None if servers is None else dict.fromkeys(servers))
    assert isinstance(agent, ModelAgent)
    return agent


def test_a_model_alone_is_a_single_agent_with_every_server(tmp_path: Path) -> None:
    agent = load(tmp_path, {"model": SCRIPTED})
    assert (agent.architecture, agent.transport, agent.model.name) == ("single_agent", "stdio", "s")
    assert (agent.scripted, agent.form, agent.crew(SERVERS)) == (True, FORM, {"agent": SERVERS})
    assert [file.name for file in agent.files] == ["a.yaml", "s.yaml"]


@pytest.mark.parametrize(
    ("fields", "crew"),
    [
        ({"architecture": "debate_critic"}, {"proposer": SERVERS, "critic": ()}),
        ({"architecture": "peer_to_peer"}, {"crm_peer": ("crm",), "ticketing_peer": ("ticketing",)}),
        (
            {"architecture": "supervisor_worker", "agents": {"a": ["crm", "ticketing"], "b": []}},
            {"supervisor": (), "a": SERVERS, "b": ()},
        ),
    ],
)
def test_who_has_which_servers_is_told_by_the_architecture_or_the_file(
    fields: dict[str, JSON], crew: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    assert load(tmp_path, {"model": SCRIPTED, **fields}).crew(SERVERS) == crew


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": {"provider": "nobody"}}, "model.provider: expected 'scripted', 'anthropic', 'openai' or 'gemini'"),
        ({"model": {"provider": "scripted"}}, "model.script: a scripted model needs the file of its script"),
        ({"model": {"provider": "openai"}}, "model.name: name the model, as openai calls it"),
        ({"model": {"provider": "openai", "name": "x", "key": "MINE"}}, "model.key: MINE would be recorded as it is"),
        (
            {"model": {"provider": "openai", "name": "x", "base_url": "http://me:word@h"}},
            "model.base_url: a user and a password may not stand in a URL",
        ),
        (
            {"models": {"a": {"provider": "openai", "name": "x", "base_url": "http://[1"}}},
            "models.a.base_url: 'http://[1' is no address of a server",
        ),
        ({"model": {"provider": "openai", "name": "x", "script": "s.yaml"}}, "only a scripted model has a script"),
        ({"model": {**SCRIPTED, "script": "missing.yaml"}}, "missing.yaml: the file cannot be read"),
        ({"architecture": "swarm"}, "architecture: expected"),
        ({"agents": {"a": ["crm"]}}, "only peer_to_peer and supervisor_worker have agents to name"),
        ({"architecture": "peer_to_peer", "agents": {"a": ["crm"]}}, "a peer needs another one"),
        ({"architecture": "supervisor_worker", "agents": {"a": ["mail"]}}, "the scenario has no server 'mail'"),
        ({"models": {"nobody": SCRIPTED}}, "there is no agent of that name; there are agent"),
        ({"form": ["a b"]}, "form[0]: 'a b' is no name of a field"),
        ({"rounds": 0}, "rounds: expected at least 1"),
        ({"nonsense": 1}, "nonsense: unknown field"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(fields: dict[str, JSON], said: str, tmp_path: Path) -> None:
    with pytest.raises(AgentError) as raised:
        load(tmp_path, {"model": SCRIPTED, **fields})
    assert said in str(raised.value)


def test_without_a_server_crm_the_file_has_to_say_who_has_what(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="nobody can tell who has which"):
        load(tmp_path, {"model": SCRIPTED, "architecture": "peer_to_peer"}, ("mail", "files"))
    load(tmp_path, {"model": SCRIPTED, "architecture": "peer_to_peer"}, None)


def test_a_key_that_is_missing_is_said_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file = tmp_path / "a.yaml"
    file.write_text("model: {provider: openai, name: gpt-4o-mini}\n")
    selection = Selection((str(SUPPORT / "credit_hold_escalation.yaml"),), agent_file=str(file))
    with pytest.raises(ProblemError, match="set OPENAI_API_KEY in the environment"):
        load_selection(selection)


def test_a_changed_script_is_a_changed_run(tmp_path: Path) -> None:
    load(tmp_path, {"model": SCRIPTED})
    scenario = str(SUPPORT / "credit_hold_escalation.yaml")
    digests = load_selection(Selection((scenario,), agent_file=str(tmp_path / "a.yaml"))).digests()
    assert str(tmp_path / "s.yaml") in digests
