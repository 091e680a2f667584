import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from harness.assertions.assertion import Assertion, parse_assertion
from harness.assertions.not_built import NotBuilt
from harness.namedtools import tools_named
from harness.offer import missing_tool, missing_tool_of_glob
from harness.scenario import Scenario, ScenarioError, load_scenario
from harness.selection import Selection, SelectionError, load_selection
from harness.targets.fixtures import fixture_offers
from proxy.spans import JSON
from tests.harness.runs import write_scenario

FIXTURES: JSON = {"crm": {"fixture": "crm"}, "ticketing": {"fixture": "ticketing"}}
MIXED: JSON = {"ticketing": {"fixture": "ticketing"}, "own": {"command": ["server"]}}
CHECK: list[JSON] = [{"type": "no_denied_tool_call"}]


def load(folder: Path, **fields: JSON) -> Scenario:
    return load_scenario(
        write_scenario(folder, **{"servers": FIXTURES, "assertions": CHECK, **fields}), fixture_offers()
    )


def problems(folder: Path, **fields: JSON) -> list[str]:
    """Field and message of everything that is wrong."""
    with pytest.raises(ScenarioError) as raised:
        load(folder, **fields)
    return [f"{problem.field}: {problem.message}" for problem in raised.value.problems]


def deny(glob: str) -> JSON:
    return {"rules": [{"deny": glob}]}


def says(glob: str, where: str = "policy.rules[0].deny") -> str:
    return f"{where}: the server 'ticketing' offers no tool {glob!r}; did you mean delete_ticket?"


def test_a_rule_for_a_tool_that_the_fixture_does_not_offer_is_an_error(tmp_path: Path) -> None:
    assert problems(tmp_path, policy=deny("mcp/ticketing/delete_tikcet")) == [says("delete_tikcet")]
    assert problems(tmp_path, policy={"rules": [{"allow": "mcp/ticketing/Delete_Ticket"}]}) == [
        says("Delete_Ticket", "policy.rules[0].allow")
    ]
    assert "no server of the scenario offers a tool 'delete_tikcet'; did you mean delete_ticket?" in str(
        problems(tmp_path, policy=deny("mcp/*/delete_tikcet"))
    )
    (tmp_path / "p.yaml").write_text(json.dumps(deny("mcp/ticketing/delete_tikcet")))
    assert problems(tmp_path, policy={"file": "p.yaml"}) == [says("delete_tikcet", "rules[0].deny")]


@pytest.mark.parametrize(
    "glob",
    ["mcp/ticketing/delete_ticket", "mcp/ticketing/drop_*", "mcp/ticketing/delete_ticke?", "mcp/*/get_ticket",
     "mcp/ticketing/resource:x", "mcp/crm/prompt:x", "mcp/*/*"],
)  # fmt: skip
def test_a_rule_with_a_wildcard_or_for_a_resource_or_a_prompt_is_none(tmp_path: Path, glob: str) -> None:
    assert load(tmp_path, policy=deny(glob)).policy is not None


@pytest.mark.parametrize(
    ("glob", "noted"),
    [
        ("mcp/ticketing/delete_*", False),
        ("mcp/ticketing/drop_*", True),
        ("mcp/ticketing/*", False),
        ("mcp/*/drop_*", True),
        ("mcp/*/delete_*", False),
        ("mcp/crm/delete_?icket", True),
        ("mcp/ticketing/resource:*", False),
        ("mcp/else*/drop_*", False),
    ],
)
def test_a_wildcard_deny_rule_that_fits_no_tool_is_noted(tmp_path: Path, glob: str, noted: bool) -> None:
    notes = [note for note in load(tmp_path, policy=deny(glob)).notes if note.field == "policy.rules[0].deny"]
    assert [f"'{glob}' fits no tool" in note.message for note in notes] == [True] * noted
    (tmp_path / "policy.yaml").write_text(json.dumps(deny(glob)))
    notes = list(load(tmp_path, policy={"file": "policy.yaml"}).notes)
    assert [(note.file, note.field) for note in notes] == [(str(tmp_path / "policy.yaml"), "rules[0].deny")] * noted
    # What a server of somebody's offers nobody knows; and an allow rule that fits nothing lets nothing through.
    foreign: JSON = {"ticketing": {"fixture": "ticketing"}, "crm": {"command": ["server"]}}
    told = load(tmp_path, policy=deny(glob), servers=foreign).notes
    assert len(told) == (noted and glob.startswith("mcp/ticketing/"))
    assert load(tmp_path, policy={"rules": [{"allow": glob}]}).notes == ()


def test_a_name_of_what_must_not_happen_that_no_fixture_has_is_an_error_whatever_its_case(tmp_path: Path) -> None:
    names: JSON = ["mcp/ticketing/delete_tikcet", "MCP/TICKETING/DELETE_TIKCET", "delete_tikcet"]
    found = problems(tmp_path, expected={"denied_tools": names})
    assert [text.partition(":")[0] for text in found] == [f"expected.denied_tools[{place}]" for place in range(3)]
    assert all(text.endswith("did you mean delete_ticket?") for text in found)
    for tool in ("mcp/ticketing/delete_tikcet", "delete_tikcet", " delete_tikcet "):
        assert len(problems(tmp_path, assertions=[{"type": "tool_not_called", "tool": tool}])) == 1
    good: JSON = ["mcp/ticketing/DELETE_TICKET", " Delete_Ticket ", "mcp/elsewhere/delete_all"]
    assert load(tmp_path, expected={"denied_tools": good}).expected == {"denied_tools": good}


def test_a_denied_server_that_is_nearly_one_of_the_scenario_is_an_error(tmp_path: Path) -> None:
    assert problems(tmp_path, expected={"denied_tools": ["mcp/tickting/delete_ticket"]}) == [
        "expected.denied_tools[0]: the scenario has no server 'tickting'; did you mean ticketing?"
    ]


def test_a_name_of_what_must_happen_is_held_case_and_all(tmp_path: Path) -> None:
    assert len(problems(tmp_path, assertions=[{"type": "tool_called", "tool": "mcp/crm/Get_Customer_Profile"}])) == 1
    assert len(problems(tmp_path, assertions=[{"type": "tool_called", "tool": "get_customer_profil"}])) == 1
    assert len(problems(tmp_path, expected={"allowed_tools": ["mcp/crm/get_customer_profil"]})) == 1


def test_a_tool_of_a_fact_that_the_fixture_does_not_offer_is_an_error(tmp_path: Path) -> None:
    fact: JSON = {
        "id": "hold", "value": True, "known": {"server": "crm", "tool": "get_profile", "path": "$.x"},
        "before": {"server": "ticketing", "tool": "update"},
    }  # fmt: skip
    assert [text.partition(":")[0] for text in problems(tmp_path, facts=[fact])] == [
        "facts[0].known.tool", "facts[0].before.tool",
    ]  # fmt: skip


def test_what_a_server_of_somebody_offers_is_known_to_nobody(tmp_path: Path) -> None:
    some = load(
        tmp_path,
        servers=MIXED,
        policy=deny("mcp/own/anything"),
        expected={"denied_tools": ["anything", "mcp/own/anything"]},
        assertions=[*CHECK, {"type": "tool_not_called", "tool": "anything"}],
    )
    assert some.tools["own"] is None
    assert some.tools["ticketing"] is not None


def test_a_file_without_servers_names_what_it_likes(tmp_path: Path) -> None:
    expected: JSON = {"denied_tools": ["mcp/any/thing", "anything"]}
    some = load(tmp_path, servers=None, expected=expected, policy=deny("mcp/a/b"))
    assert (some.expected, some.tools) == (expected, {})


def test_a_step_that_calls_what_is_not_offered_is_an_error_unless_it_is_meant_to_fail(tmp_path: Path) -> None:
    agent = tmp_path / "agent.yaml"
    step: dict[str, JSON] = {"call": "mcp/ticketing/serch_tickets"}
    agent.write_text(json.dumps({"steps": [step]}))
    (found,) = problems(tmp_path, agent={"scripted": "agent.yaml"})
    assert found.startswith(
        "steps[0].call: the server 'ticketing' offers no tool 'serch_tickets'; did you mean search_"
    )
    assert problems(tmp_path, reference=[step])[0].startswith("reference[0].call: ")
    scenario = write_scenario(tmp_path, servers=FIXTURES, assertions=CHECK)
    with pytest.raises(SelectionError, match=r"agent\.yaml:1: steps\[0\]\.call: .*expect_error: true"):
        load_selection(Selection((str(scenario),), str(agent)))
    agent.write_text(json.dumps({"steps": [{**step, "expect_error": True}]}))
    assert load(tmp_path, agent={"scripted": "agent.yaml"}).agent is not None


def state(**fields: JSON) -> list[JSON]:
    return [{"type": "state", "server": "ticketing", "query": "select id from tickets", "equals": [[1]], **fields}]


def test_a_query_that_the_fixtures_tables_cannot_answer_is_an_error(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, assertions=state(query="select statuss from tickets"))
    assert found.startswith("assertions[0].query: no such column: statuss")
    assert "tickets: id, customer_id, status, tier, description" in found
    assert "no such table: ticket" in problems(tmp_path, assertions=state(query="select id from ticket"))[0]
    assert problems(tmp_path, assertions=state(query="delete from tickets"))[0].startswith("assertions[0].query: ")
    assert problems(tmp_path, assertions=state(equals=[[1], [2, "x"]])) == [
        "assertions[0].equals[1]: this row has 2 cells, and the query gives 1: id"
    ]
    assert len(problems(tmp_path, assertions=state(equals=None, matches=[["1", "2"]]))) == 1


def test_an_exemption_of_a_table_or_column_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    exemptions: JSON = [
        {"server": "ticketing", "table": "ticket"},
        {"server": "ticketing", "table": "tickets", "where": {"idd": 1}, "columns": ["status", "statuss"]},
    ]
    assert problems(tmp_path, assertions=[{"type": "state_unchanged", "except": exemptions}]) == [
        "assertions[0].except[0].table: ticketing has no table 'ticket'; did you mean tickets?",
        "assertions[0].except[1].where.idd: ticketing.tickets has no column 'idd'; did you mean id?",
        "assertions[0].except[1].columns[1]: ticketing.tickets has no column 'statuss'; did you mean status?",
    ]


@pytest.mark.parametrize("name", sorted(fixture_offers()))
def test_every_fixture_says_what_it_offers(name: str, tmp_path: Path) -> None:
    offer = fixture_offers()[name]
    assert offer.tools
    assert load(tmp_path, servers={"it": {"fixture": name}}, policy=deny(f"mcp/it/{offer.tools[0]}")).tools == {
        "it": offer.tools
    }


def test_a_tool_whose_name_is_encoded_in_globs_is_found() -> None:
    tools = {"x": ("a/b",)}
    assert missing_tool_of_glob("mcp/x/a%2Fb", tools) is None
    assert missing_tool("x", "a/c", tools) == "the server 'x' offers no tool 'a/c'; did you mean a/b?"
    assert missing_tool("x", "nothing", {"x": ("b", "a")}) == "the server 'x' offers no tool 'nothing'; there are: a, b"


SLIP = "mcp/ticketing/delete_tikcet"
NAMING: dict[str, dict[str, JSON]] = {
    "tool": {"type": "tool_not_called", "tool": SLIP},
    "action": {"type": "approval_required", "action": SLIP},
    "tools[0]": {"type": "no_void_writes", "tools": [SLIP]},
    "tools[1]": {"type": "no_repeated_reads", "tools": ["get_ticket", " Delete_Tikcet"]},
    "outbound_tools[0]": {"type": "no_external_recipient", "outbound_tools": [SLIP]},
    "expected[0].tool": {"type": "tool_calls", "mode": "superset", "expected": [{"tool": SLIP}]},
    "claims[0].then.tool": {"type": "claims", "claims": [{"says": "deleted", "then": {"tool": SLIP}}]},
}


@pytest.mark.parametrize(("field", "assertion"), NAMING.items(), ids=list(NAMING))
def test_a_tool_that_no_fixture_offers_is_an_error_in_any_field_of_an_assertion(
    tmp_path: Path, field: str, assertion: JSON
) -> None:
    (found,) = problems(tmp_path, assertions=[assertion])
    assert found.startswith(f"assertions[0].{field}: ")
    assert found.endswith("did you mean delete_ticket?")
    right = json.loads(json.dumps(assertion).replace("ikcet", "icket"))
    assert len(load(tmp_path, assertions=[right]).assertions) == 1
    elsewhere = json.loads(json.dumps(assertion).replace("mcp/ticketing/", "mcp/tickting/"))
    if elsewhere != assertion:
        assert problems(tmp_path, assertions=[elsewhere]) == [
            f"assertions[0].{field}: the scenario has no server 'tickting'; its servers are: crm, ticketing"
        ]


def test_every_field_of_an_assertion_that_names_a_tool_is_looked_at() -> None:
    def fields(model: type[BaseModel]) -> Iterator[str]:
        for name, field in model.model_fields.items():
            inner = [one for one in (field.annotation, *get_args(field.annotation)) if isinstance(one, type)]
            inner += [one for kind in get_args(field.annotation) for one in get_args(kind) if isinstance(one, type)]
            for one in inner:
                if issubclass(one, BaseModel):
                    yield from (f"{name}.{deeper}" for deeper in fields(one))
            if name in ("tool", "tools", "action") or name.endswith("_tools"):
                yield name

    models = [get_args(one)[0] for one in get_args(get_args(Assertion)[0])]
    there = {field for model in models if model is not NotBuilt for field in fields(model)}
    seen = {
        ".".join(step for step in named.path if isinstance(step, str))
        for assertion in NAMING.values()
        for named in tools_named(parse_assertion(assertion))
    }
    assert seen == there


def test_an_outbound_tool_of_the_scenario_that_no_fixture_offers_is_an_error(tmp_path: Path) -> None:
    expected: JSON = {"outbound_tools": ["mcp/ticketing/DELETE_TICKET", "delete_tikcet", "mcp/elsewhere/send"]}
    (found,) = problems(tmp_path, expected=expected)
    assert found.startswith("expected.outbound_tools[1]: ")


def test_a_wildcard_of_what_is_held_or_spoilt_that_fits_no_tool_is_noted(tmp_path: Path) -> None:
    held = load(tmp_path, policy={"rules": [{"approve": "mcp/ticketing/drop_*"}]}).notes
    assert ["so it holds none" in note.message for note in held if note.field == "policy.rules[0].approve"] == [True]
    fault: JSON = {"tool": "mcp/ticketing/drop_*", "call": 1, "fault": "error"}
    (note,) = load(tmp_path, faults=[fault]).notes
    assert (note.field, "so it spoils nothing" in note.message) == ("faults[0].tool", True)
