"""Trials of model agents at the credit-hold task, in this process, judged with the agents' own events and without."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ParamSpec

import pytest

from harness.agentfile import load_agent
from harness.category import categorised
from harness.collecting import Gathered, gather
from harness.hiding import make_hiding
from harness.judge import judge
from harness.modelagent import ModelAgent
from harness.results import TrialResult
from harness.scenario import Scenario, load_scenario
from harness.targets.fixtures import fixture_offers
from harness.trace import Event, Trace
from harness.trial import TrialPlan, run_trial
from harness.verdict import Verdict
from proxy.spans import JSON
from proxy.yamlfile import load_document
from tests.harness.runs import SCENARIOS

P = ParamSpec("P")
SUPPORT = SCENARIOS / "support"
FACT: dict[str, JSON] = {
    "id": "credit_hold",
    "value": True,
    "known": {
        "server": "crm",
        "tool": "get_customer_profile",
        "arguments": {"customer_id": "CUST-004"},
        "path": "$.credit_hold",
    },
    "stated_as": ["credit hold"],
    "asked_as": ["credit hold", "profile", "all details"],
    "before": {"server": "ticketing", "tool": "update_ticket"},
}


def credit_hold(folder: Path, *more: JSON, **fields: JSON) -> Scenario:
    """The shipped task with its fact, and with more assertions; `fields` come over its own."""
    shipped = load_document((SUPPORT / "credit_hold_escalation.yaml").read_bytes(), "shipped").data
    assert isinstance(shipped, dict)
    assertions = shipped["assertions"]
    assert isinstance(assertions, list)
    document = {**shipped, "facts": [FACT], "assertions": [*assertions, *more], **fields}
    del document["agent"]
    file = folder / "scenario.yaml"
    file.write_text(json.dumps(document))
    return load_scenario(file, fixture_offers())


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial; `without` is its verdict with every event thrown away that the wire does not show."""

    result: TrialResult
    without: Verdict
    trace: Trace
    folder: Path

    @property
    def verdict(self) -> Verdict:
        return self.result.verdict

    def events(self, *types: str) -> list[Event]:
        return [event for event in self.trace.events if event.type in types]

    def agents_of_calls(self) -> dict[str, set[str]]:
        """For each tool that was called, whose connections the calls came over."""
        found: dict[str, set[str]] = {}
        for call in self.trace.tool_calls:
            found.setdefault(str(call.mcp_tool_name), set()).add(str(call.agent))
        return found


def agent_file(folder: Path, script: str | list[JSON], **fields: JSON) -> Path:
    """An agent file over a shipped script, by its name, or over rules."""
    if isinstance(script, list):
        place = folder / "script.yaml"
        place.write_text(json.dumps({"script": script}))
    else:
        place = SUPPORT / "scripts" / f"{script}.yaml"
    model: dict[str, JSON] = {"provider": "scripted", "script": str(place)}
    given = fields.pop("model", {})
    assert isinstance(given, Mapping)
    file = folder / "agent.yaml"
    file.write_text(json.dumps({"model": {**model, **given}, "transport": "in_process", **fields}))
    return file


def keeping(collect: Callable[P, Gathered], kept: list[Gathered]) -> Callable[P, Gathered]:
    def keep(*arguments: P.args, **named: P.kwargs) -> Gathered:
        kept.append(collect(*arguments, **named))
        return kept[-1]

    return keep


def try_once(scenario: Scenario, agent: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int = 1) -> Tried:
    """Run the agent; the evidence is kept on its way to the judge."""
    kept: list[Gathered] = []
    monkeypatch.setattr("harness.trial.gather", keeping(gather, kept))
    hiding = make_hiding({}, bytes(32))
    run = folder / f"run-{number}"
    loaded = load_agent(agent, scenario.tools)
    assert isinstance(loaded, ModelAgent)
    result = run_trial(TrialPlan("run", run, hiding, scenario, loaded, number))
    monkeypatch.setattr("harness.trial.gather", gather)
    assert kept, result.verdict.reason
    evidence = kept[-1].evidence
    seen = tuple(event for event in evidence.trace.events if event.type.startswith("mcp_"))
    roster = loaded.roster(scenario.servers)
    blind = replace(evidence, trace=replace(evidence.trace, events=seen), roster=roster)
    without = categorised(scenario, blind, judge(scenario.assertions, blind, result.verdict.status))
    assert result.folder is not None
    return Tried(result, without, evidence.trace, run / result.folder)
