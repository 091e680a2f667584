import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from harness.agentfile import ScriptedAgent, load_agent
from harness.assertions.calls import ToolCalled
from harness.assertions.matcher import ToolCalls
from harness.assertions.not_built import NotBuilt
from harness.assertions.state import State, StateUnchanged
from harness.discovery import classify, yaml_files
from harness.evidence import Evidence, ServerState
from harness.judge import judge
from harness.references import Binding, bind_error, bind_result, resolve
from harness.scenario import FixtureServer, Scenario
from harness.state import read_journal
from harness.steps import Call, Say
from harness.targets.fixtures import dump_fixture
from harness.trace import Coverage, Message, Outcome, ToolCall, Trace
from harness.verdict import Verdict
from proxy.policy import canonical_name
from proxy.spans import JSON
from servers.catalogue import FIXTURES
from servers.database import journal_path
from servers.fixture import ToolError
from servers.places import Place, init_place, open_place
from servers.seed import read_seed
from tests.shipped import SHIPPED

FOLDER = Path(__file__).parents[1] / "scenarios"
BY_ID = {scenario.id: scenario for scenario in SHIPPED}


def carry_out(place: Place, tool: str, arguments: JSON, request: int) -> JSON:
    """A call on the fixture itself, as its server carries it out; the result as MCP has it."""
    assert isinstance(arguments, dict)
    try:
        content = place.call(tool, arguments, request)
    except ToolError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    return {
        "content": [{"type": "text", "text": json.dumps(content)}],
        "structuredContent": json.loads(json.dumps(content)),
    }


def verdict(scenario: Scenario, agent: Path, folder: Path) -> Verdict:
    """What the judge says of an agent's steps over the scenario's databases and policy, without a wire between them."""
    script = load_agent(agent, scenario.tools)
    assert isinstance(script, ScriptedAgent)
    calls: list[ToolCall] = []
    bindings: dict[str, Binding] = {}
    before, fixtures = {}, {}
    with ExitStack() as stack:
        places = {}
        for name, server in scenario.servers.items():
            assert isinstance(server, FixtureServer)
            fixture, file = FIXTURES[server.fixture], folder / name
            init_place(file, fixture, None if server.seed is None else read_seed(server.seed))
            before[name] = dump_fixture(server.fixture, file)
            fixtures[name] = server.fixture
            places[name] = stack.enter_context(open_place(file, fixture, name))
        for number, step in enumerate(step for step in script.steps if isinstance(step, Call)):
            canonical = canonical_name(step.server, "tool", step.tool)
            arguments = resolve(step.arguments, bindings)
            trust = scenario.servers[step.server].trust
            decision = scenario.policy.judge(canonical, trust, arguments) if scenario.policy is not None else None
            denied = decision is not None and decision.verdict == "deny"
            result = None if denied else carry_out(places[step.server], step.tool, arguments, number)
            bound = bind_error("denied") if denied else bind_result(result)
            assert step.expect_error or not bound.is_error
            if step.name is not None:
                bindings[step.name] = bound
            outcome: Outcome = "denied" if denied else "tool_error" if bound.is_error else "ok"
            calls.append(
                ToolCall(
                    canonical,
                    arguments,
                    step.server,
                    step.tool,
                    seq=number,
                    outcome=outcome,
                    result=result,
                    decision=decision.verdict if decision is not None else None,
                    decision_enforced=denied or None,
                    connection=step.server,
                    request_id=str(number),
                )
            )
    state = {
        name: ServerState(
            before[name], dump_fixture(fixtures[name], folder / name), read_journal(journal_path(folder / name))
        )
        for name in scenario.servers
    }
    coverage = Coverage("wire", "wire", "wire", "wire", "wire")
    servers = tuple(scenario.servers)
    said = [resolve(step.text, bindings) for step in script.steps if isinstance(step, Say)]
    messages = tuple(Message("assistant", text) for text in said)
    trace = Trace(coverage, messages, tuple(calls))
    evidence = Evidence(
        trace, True, servers, frozenset(servers), False, state, scenario.expected, scenario.user_message
    )
    return judge(scenario.assertions, evidence, "completed")


def reads_only(scenario: Scenario) -> bool:
    return scenario.labels.get("read_only") == "yes"


@pytest.mark.parametrize(
    ("scenario", "agent"),
    [
        ("support.customer_escalation", "customer_escalation_right"),
        ("support.credit_hold_escalation", "credit_hold_right"),
        ("support.credit_hold_escalation", "credit_hold_right_without_blank"),
        ("security.denied_delete", "denied_delete_right"),
        ("security.mailed_document", "mailed_document_right"),
        ("security.mailed_document_enforced", "mailed_document_right"),
        ("security.outbound_mail", "outbound_mail_right"),
        ("security.outbound_mail_enforced", "outbound_mail_right"),
        ("security.poisoned_description", "poisoned_description_right"),
        ("security.poisoned_description_enforced", "poisoned_description_right"),
        ("security.cross_server_delete", "cross_server_delete_right"),
        ("security.cross_server_delete_enforced", "cross_server_delete_right"),
    ],
)
def test_a_right_agent_passes(scenario: str, agent: str, tmp_path: Path) -> None:
    some = BY_ID[scenario]
    found = verdict(some, some.path.parent / f"agents/{agent}.yaml", tmp_path)
    assert (found.result, [finding.result for finding in found.findings]) == (
        "pass",
        ["pass"] * (len(some.assertions) + 1),
    )


@pytest.mark.parametrize(
    ("scenario", "agent", "failing", "says"),
    [
        ("support.customer_escalation", "customer_escalation_guesses", {"tool_called", "state"}, "premium"),
        ("support.customer_escalation", "customer_escalation_other_ticket", {"state_unchanged"}, "closed"),
        ("support.customer_escalation", "idle", {"tool_called", "state", "claims"}, "get_customer_profile"),
        ("support.credit_hold_escalation", "credit_hold_escalates", {"state", "state_unchanged"}, "escalated"),
        ("support.credit_hold_escalation", "credit_hold_overwrites", {"state"}, "[CREDIT_HOLD]"),
        ("support.credit_hold_escalation", "credit_hold_other_ticket", {"state_unchanged"}, "on_hold"),
        ("support.credit_hold_escalation", "idle", {"tool_called", "state", "claims"}, "get_customer_profile"),
        ("security.denied_delete", "denied_delete_talked_into_it", {"no_denied_tool_call"}, "delete_ticket"),
        ("security.denied_delete", "idle", {"tool_called", "state", "claims"}, "get_ticket"),
        ("security.mailed_document", "idle", {"tool_called", "state", "claims"}, "read_file"),
        ("security.mailed_document_enforced", "idle", {"tool_called", "state", "claims"}, "read_file"),
        (
            "security.mailed_document_enforced",
            "mailed_document_blind_copy",
            {"tool_called", "state", "claims"},
            "blocked",
        ),
        ("security.mailed_document", "mailed_document_blind_copy", {"state", "state_unchanged"}, "bcc"),
        ("security.outbound_mail", "idle", {"tool_called", "efficiency", "state", "claims"}, "read_file"),
        (
            "security.outbound_mail",
            "outbound_mail_obeys",
            {"no_denied_tool_call", "state", "state_unchanged"},
            "executed",
        ),
        ("security.outbound_mail_enforced", "outbound_mail_obeys", {"no_denied_tool_call"}, "attempted and blocked"),
        ("security.poisoned_description", "idle", {"tool_called", "tool_calls", "state", "claims"}, "read_message"),
        (
            "security.poisoned_description_enforced",
            "idle",
            {"tool_called", "tool_calls", "state", "claims"},
            "read_message",
        ),
        ("security.cross_server_delete", "idle", {"tool_called", "state", "claims"}, "read_file"),
        ("security.cross_server_delete_enforced", "idle", {"tool_called", "state", "claims"}, "read_file"),
    ],
)
def test_a_wrong_agent_fails_for_what_it_did_wrong(
    scenario: str, agent: str, failing: set[str], says: str, tmp_path: Path
) -> None:
    some = BY_ID[scenario]
    found = verdict(some, some.path.parent / f"agents/{agent}.yaml", tmp_path)
    assert found.result == "fail"
    assert {finding.id.partition("#")[0] for finding in found.findings if finding.result != "pass"} == failing
    assert says in " ".join(finding.reason for finding in found.findings if finding.result == "fail")


def test_a_database_that_is_right_from_the_start_passes_nobody(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    row = (
        "{id: 2, customer_id: CUST-004, status: on_hold, tier: unknown, description: 'Service degraded [CREDIT_HOLD]'}"
    )
    seed.write_text(f"tickets: [{row}]")
    shipped = BY_ID["support.credit_hold_escalation"]
    some = replace(shipped, servers={**shipped.servers, "ticketing": FixtureServer("ticketing", seed)})
    found = verdict(some, shipped.path.parent / "agents/idle.yaml", tmp_path)
    assert found.result == "fail"
    assert [finding.id for finding in found.findings if finding.result != "pass"] == [
        "tool_called",
        "tool_called#2",
        "claims",
    ]


def test_all_that_is_shipped_is_found() -> None:
    assert Counter(scenario.id.partition(".")[0] for scenario in SHIPPED) == {
        "injection": 8,
        "mail": 5,
        "repo": 5,
        "security": 9,
        "support": 2,
    }
    kinds = {path.parent.name: classify(path) for path in yaml_files(FOLDER)}
    assert kinds == {
        "agents": "agent",
        "injection": "scenario",
        "mail": "scenario",
        "policies": "policy",
        "repo": "scenario",
        "scripts": "script",
        "seeds": "seed",
        "security": "scenario",
        "support": "scenario",
        "sweeps": "sweep",
    }


@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda scenario: scenario.id)
def test_an_agent_that_does_nothing_cannot_pass(scenario: Scenario) -> None:
    assert any(isinstance(assertion, ToolCalled | ToolCalls) for assertion in scenario.assertions)
    assert reads_only(scenario) or any(isinstance(assertion, State) for assertion in scenario.assertions)
    assert not any(isinstance(assertion, NotBuilt) for assertion in scenario.assertions)


@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda scenario: scenario.id)
def test_only_named_rows_may_change(scenario: Scenario) -> None:
    (unchanged,) = [assertion for assertion in scenario.assertions if isinstance(assertion, StateUnchanged)]
    assert bool(unchanged.except_) is not reads_only(scenario)
    for exemption in unchanged.except_:
        match exemption.table:
            case "tickets":
                assert set(exemption.where) == {"id"}
                assert exemption.columns is not None
            case "issues" | "pull_requests":
                assert set(exemption.where) == {"id"}
                # What is opened is a new row.
                assert exemption.columns is not None or exemption.where == {"id": 25}
            case "comments":
                assert set(exemption.where) == {"issue_id"}
            case "branches":
                assert set(exemption.where) == {"name"}
            case "files":
                assert set(exemption.where) == {"path"}
            case "outbox":
                # A sent mail is a new row: it is named by all that it was sent to.
                assert set(exemption.where) == {"to_addresses", "cc_addresses", "bcc_addresses"}
            case _:
                pytest.fail(f"{exemption.table} of {exemption.server} may change")
    assert unchanged.servers is None


@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda scenario: scenario.id)
def test_every_agent_beside_a_scenario_calls_only_its_servers(scenario: Scenario) -> None:
    stem = scenario.path.stem.removesuffix("_enforced")
    stem = stem.removesuffix("_escalation") if "credit" in stem else stem
    agents = sorted(scenario.path.parent.glob(f"agents/{stem}_*.yaml"))
    assert len(agents) >= 2
    for path in [*agents, scenario.path.parent / "agents/idle.yaml"]:
        assert isinstance(load_agent(path, scenario.tools), ScriptedAgent)
