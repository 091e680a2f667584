"""Every field of a file that a person writes is documented, and no other."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from harness.agentfile import load_agent
from harness.scenariofile import (
    AgentMarkEntry,
    BeforeEntry,
    Category,
    ContextEntry,
    ExpectedEntry,
    FactEntry,
    InputEntry,
    KnownEntry,
    LimitsEntry,
    MemoryEntry,
    ScenarioEntry,
    SecretEntry,
    ServerEntry,
    Severity,
)
from harness.sweepfile import SweepEntry, SweepLimitsEntry
from harness.sweeping import REPORTS
from harness.up.upfile import UpEntry, UpServerEntry
from proxy import refusals
from proxy.policy import CLIENT_REQUESTS, TRUST_LABELS, PolicyError, parse_policy
from proxy.spans import JSON
from servers.catalogue import FIXTURES
from tests.docs.pages import TEXTS, fields, first_cells, section, ticked, words_of


def test_every_field_of_a_scenario_is_in_its_table_and_no_other() -> None:
    told = {heading: first_cells(section("scenario.md", heading)) for heading in (
        "Scenario", "Input", "Servers", "Limits", "Expected", "Facts")}  # fmt: skip
    assert set(told["Scenario"]) == fields(ScenarioEntry)
    assert set(told["Input"]) == fields(InputEntry)
    assert set(told["Servers"]) == fields(ServerEntry)
    assert set(told["Limits"]) == fields(LimitsEntry)
    assert set(told["Expected"]) == fields(ExpectedEntry)
    assert set(told["Facts"]) == fields(FactEntry)


def test_every_field_of_a_file_of_wiretrap_up_is_in_a_table_and_no_other() -> None:
    assert set(first_cells(section("up.md", "The file"))) == fields(UpEntry) | fields(UpServerEntry)


def test_every_field_of_a_sweep_is_in_its_table_and_no_other_and_so_is_every_report() -> None:
    text = section("sweep.md", "The file")
    assert set(first_cells(text)) == fields(SweepEntry)
    assert fields(SweepLimitsEntry) <= ticked(text)
    assert set(REPORTS) <= ticked(section("sweep.md", "The report"))


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Input", ContextEntry),
        ("Expected", MemoryEntry),
        ("Expected", SecretEntry),
        ("Facts", KnownEntry),
        ("Facts", BeforeEntry),
        ("Task files of agent-mark", AgentMarkEntry),
    ],
)
def test_every_field_of_a_smaller_map_is_named(heading: str, model: type[BaseModel]) -> None:
    assert fields(model) <= set(re.findall(r"[a-z_]+", " ".join(ticked(section("scenario.md", heading)))))


def test_every_field_of_an_agent_file_and_its_steps_is_named(tmp_path: Path) -> None:
    told = first_cells(section("scenario.md", "Agent files"))
    accepted = {"steps", "transport", "command", "profile"}
    for step in ("call: mcp/a/b", "read: mcp/a/resource:b", "prompt: mcp/a/prompt:b", "say: x", "goal: x"):
        accepted |= unknown_field_list(tmp_path, f"steps:\n  - {{{step}, nonsense: 1}}\n")
    assert set(told) == accepted


def unknown_field_list(folder: Path, text: str) -> set[str]:
    file = folder / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match="here may stand") as raised:
        load_agent(file)
    return listed(str(raised.value))


def listed(message: str) -> set[str]:
    found = re.search(r"here may stand ([a-z_, ]+)", message)
    assert found is not None
    return set(found[1].split(", "))


@pytest.mark.parametrize(
    ("heading", "data", "besides"),
    [
        ("Policy", {"nonsense": 1}, set()),
        ("Rules", {"rules": [{"nonsense": 1}]}, set()),
        (
            "Requests to the client",
            {"client_requests": {"nonsense": 1}},
            {"client_requests", "allow", "deny", "input_required"},
        ),
    ],
)
def test_every_field_of_a_policy_is_named(heading: str, data: JSON, besides: set[str]) -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy(data, "policy", lambda _: 1)
    text = section("policy.md", heading)
    told = set(first_cells(text)) if heading != "Requests to the client" else ticked(text) - besides
    assert told == listed(str(raised.value))


def test_every_value_of_a_policy_and_every_code_of_a_refusal_is_named() -> None:
    told = ticked(TEXTS["policy.md"])
    assert {"enforce", "observe", "tool_error", "error", "hidden", *TRUST_LABELS, *CLIENT_REQUESTS.values()} <= told
    codes = {str(code) for code in (
        refusals.DENIED, refusals.NOT_READABLE, refusals.SERVER_ENDED, refusals.RECORDER_FAILED)}  # fmt: skip
    assert set(first_cells(section("wire.md", "Refusals"))) == codes
    assert codes <= set(first_cells(section("policy.md", "How a refusal looks")))
    assert refusals.REFUSAL_KEY in section("wire.md", "Refusals")


def test_every_category_severity_and_label_is_named() -> None:
    told = ticked(section("scenario.md", "Scenario"))
    assert words_of(Category) | words_of(Severity) <= told
    assert set(TRUST_LABELS) <= ticked(section("scenario.md", "Servers"))


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_every_fixture_has_a_section_with_every_tool(name: str) -> None:
    told = ticked(section("servers.md", name))
    assert {tool.name for tool in FIXTURES[name].tools} <= told
    assert name in ticked(section("scenario.md", "Servers"))
