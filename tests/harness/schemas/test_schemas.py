import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.agentfile import AgentError, load_agent
from harness.commands.schema import command
from harness.discovery import Kind, classify, yaml_files
from harness.intake import fields_of
from harness.scenario import ScenarioError, load_scenario
from harness.schemas.catalogue import SCHEMAS, schema_of, schema_text
from harness.schemas.written import PolicyEntry, RuleEntry
from harness.trace import Coverage, Event, Message, Trace
from harness.tracefile import trace_to_json
from proxy.policy import PolicyError, parse_policy
from proxy.spans import JSON
from proxy.yamlfile import load_document
from tests.harness.made import call, reported
from tests.harness.runs import ECHOED, ROOT, SCENARIOS
from tests.harness.shared_data import shared_data

FILES = [file for file in yaml_files(SCENARIOS) if classify(file) in SCHEMAS]


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(name))


def fits(name: str, data: JSON) -> bool:
    return bool(validator(name).is_valid(data))


def wrong(name: str, data: JSON) -> list[str]:
    return [error.message for error in validator(name).iter_errors(data)]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_schema_in_the_docs_is_the_one_that_is_printed_and_a_schema(name: str) -> None:
    written = (ROOT / "docs" / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    assert written == schema_text(name), "run `make schemas`"
    Draft202012Validator.check_schema(schema_of(name))
    shown = CliRunner().invoke(command, [name])
    assert (shown.exit_code, shown.stdout) == (0, written)


def test_nothing_else_lies_among_the_schemas_and_another_name_is_refused() -> None:
    assert {path.stem for path in (ROOT / "docs" / "schemas").iterdir()} == set(SCHEMAS)
    assert CliRunner().invoke(command, ["seed"]).exit_code == 2


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SCENARIOS)))
def test_every_file_that_is_shipped_fits_its_schema(file: Path) -> None:
    assert wrong(classify(file), load_document(file.read_bytes(), str(file)).data) == []


def test_every_kind_of_file_is_among_those_that_are_shipped() -> None:
    kinds: set[Kind] = {"scenario", "agent", "policy"}
    assert {classify(file) for file in FILES} == kinds


def test_scenarios_of_the_owasp_harness_fit_the_schema() -> None:
    files = yaml_files(shared_data("owasp", "scenarios"))
    assert len(files) == 13
    assert [wrong("scenario", load_document(file.read_bytes(), str(file)).data) for file in files] == [[]] * 13


BARE: dict[str, JSON] = {
    "id": "small",
    "title": "t",
    "category": "task",
    "input": {"user_message": "hello"},
    "servers": {"echo": {"command": ["server"]}},
    "assertions": ECHOED,
}
SAME: tuple[tuple[dict[str, JSON], bool], ...] = (
    ({}, True),
    ({"id": "a b"}, False),
    ({"id": ".."}, False),
    ({"title": ""}, False),
    ({"categroy": "task"}, False),
    ({"category": "other"}, False),
    ({"input": {"user_message": 1}}, False),
    ({"input": {"own": 1}, "target": {"own": 1}, "expected": {"own": 1}}, True),
    ({"expected": {"denied_tools": "x"}}, False),
    ({"servers": {"echo": {"command": ["server"], "url": "http://localhost/"}}}, False),
    ({"servers": {"echo": {}}}, False),
    ({"servers": {"a/b": {"command": ["server"]}}}, False),
    ({"agent": {}}, False),
    ({"agent": {"command": ["a"], "scripted": "b"}}, False),
    ({"agent": {"command": ["a"]}}, True),
    ({"agent": {"profile": "claude-code"}}, True),
    ({"agent": {"profile": "claude-code", "scripted": "a.yaml"}}, False),
    ({"agent": {"http": {"url": "http://localhost/"}}}, True),
    ({"agent": {"http": {"url": "http://localhost/"}, "trace": "t.json"}}, False),
    ({"agent": {"pydantic-ai": {"function": "a:b"}}}, True),
    ({"agent": {"python": "a:b", "command": ["a"]}}, False),
    ({"agent": {"model": {"provider": "openai", "name": "x"}, "architecture": "debate_critic"}}, True),
    ({"agent": {"model": {"provider": "openai", "name": "x"}, "architecture": "choir"}}, False),
    ({"limits": {"seconds": 0}}, False),
    ({"limits": {"seconds": 5, "tokens": 9}}, True),
    ({"trials": 0}, False),
    ({"assertions": []}, False),
    ({"assertions": [{"type": "tool_called", "tool": "mcp/echo/x", "minimum": 1}]}, False),
    ({"assertions": [{"type": "tool_called"}]}, False),
    ({"assertions": [{"type": "still_to_come", "anything": [1]}]}, True),
    ({"assertions": [{"type": "tool_calls", "mode": "any_order", "expected": [{"tool": "x"}]}]}, True),
    ({"assertions": [{"type": "tool_calls", "mode": "some_order"}]}, False),
    ({"policy": {"rules": [{"deny": "mcp/*/*"}]}}, True),
    ({"policy": {"rules": [{"deny": "mcp/*/*", "allow": "mcp/*/*"}]}}, False),
    ({"reference": [{"call": "mcp/echo/echo", "as": "p"}, {"say": "x"}, {"goal": "y"}]}, True),
    ({"reference": [{"call": "mcp/echo/echo", "say": "x"}]}, False),
    ({"facts": [{"id": "f", "value": 1, "known": {"server": "echo", "tool": "t", "path": "$.a"}}]}, True),
    ({"facts": [{"id": "f", "value": 1, "known": {"server": "echo", "tool": "t", "path": 1}}]}, False),
)


@pytest.mark.parametrize(("change", "right"), SAME, ids=lambda value: re.sub(r"\W+", "_", str(value))[:50])
def test_the_loader_and_the_schema_of_scenarios_agree(change: dict[str, JSON], right: bool, tmp_path: Path) -> None:
    data = {**BARE, **change}
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(data))
    try:
        load_scenario(file)
    except ScenarioError:
        loaded = False
    else:
        loaded = True
    assert (loaded, fits("scenario", data)) == (right, right)


@pytest.mark.parametrize(
    ("data", "right"),
    [
        ({"steps": []}, True),
        ({"steps": [{"say": "x"}], "transport": "in_process"}, True),
        ({"steps": [{"say": "x"}], "transport": "http"}, False),
        ({"steps": [{"shout": "x"}]}, False),
        ({"command": ["a", "{prompt}"]}, True),
        ({"command": []}, False),
        ({"command": ["a"], "steps": []}, False),
        ({"profile": "claude-code"}, True),
        ({"profile": "claude-code", "command": ["a"]}, True),
        ({"profile": "nobody"}, False),
        ({"profile": None}, False),
        ({}, False),
        ({"model": {"provider": "scripted"}, "rounds": 0}, False),
        ({"model": {"provider": "nobody"}}, False),
    ],
)
def test_the_loader_and_the_schema_of_agent_files_agree(data: JSON, right: bool, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(json.dumps(data))
    try:
        load_agent(file)
    except AgentError:
        loaded = False
    else:
        loaded = True
    assert (loaded, fits("agent", data)) == (right, right)


VALUES: st.SearchStrategy[JSON] = st.sampled_from(["allow", "deny", "enforce", "hidden", "error", "x", 1, None, True])
LABELS: st.SearchStrategy[JSON] = st.one_of(
    VALUES, st.lists(st.sampled_from(["trusted", "internal", "strange"]), max_size=2).map(lambda found: [*found])
)
GLOBS: st.SearchStrategy[JSON] = st.sampled_from(["mcp/*/*", "mcp/a/b", "mcp/a", "other", 1])
DURATIONS: st.SearchStrategy[JSON] = st.sampled_from(["60s", "500ms", "0s", "10", "1h", 5, None])
RULES = st.fixed_dictionaries(
    {},
    optional={
        "allow": GLOBS,
        "deny": GLOBS,
        "approve": GLOBS,
        "wait": DURATIONS,
        "grant_lasts": DURATIONS,
        "arguments": st.sampled_from([{}, {"type": "object"}, None, "x"]),
        "trust": LABELS,
        "reason": VALUES,
        "as": VALUES,
        "also": VALUES,
    },
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "mode": VALUES,
        "default": VALUES,
        "rules": st.one_of(st.lists(RULES, max_size=2), VALUES),
        "client_requests": st.one_of(
            VALUES, st.dictionaries(st.sampled_from(["sampling", "roots", "x"]), VALUES, max_size=2)
        ),
        "policy": VALUES,
    },
)


@settings(max_examples=300, deadline=None)
@given(data=POLICIES)
def test_the_proxy_and_the_schema_of_policies_agree(data: dict[str, JSON]) -> None:
    try:
        parse_policy(data, "policy", lambda _: None)
    except PolicyError:
        read = False
    else:
        read = True
    assert fits("policy", data) == read, wrong("policy", data)


def test_the_fields_of_a_policy_are_those_that_the_proxy_knows() -> None:
    def told(data: JSON) -> Iterator[set[str]]:
        with pytest.raises(PolicyError) as caught:
            parse_policy(data, "policy", lambda _: None)
        for problem in caught.value.problems:
            if "here may stand" in problem.message:
                yield set(problem.message.partition("here may stand ")[2].split(", "))

    assert list(told({"strange": 1})) == [set(fields_of(PolicyEntry).split(", "))]
    assert list(told({"rules": [{"deny": "mcp/*/*", "strange": 1}]})) == [set(fields_of(RuleEntry).split(", "))]


def test_a_trace_of_every_field_fits_its_schema_and_one_that_lacks_a_part_does_not() -> None:
    trace = Trace(
        Coverage("reported", "wire", "wire", "wire", "wire"),
        (Message("user", [{"type": "text"}], 1, extra={"own": 1}),),
        (call(arguments={"a": 1}, seq=2), reported(None, arguments=None)),
        (Event("goal", {"id": "a"}, 3, "2026-11-30T12:00:00Z", "s1", True),),
        order="approximate",
        gaps=("a line is torn",),
    )
    written = trace_to_json(trace)
    assert wrong("trace", written) == []
    for key in ("schema_version", "coverage", "messages", "tool_calls", "events"):
        assert not fits("trace", {name: value for name, value in written.items() if name != key})
    assert not fits("trace", {**written, "strange": 1})
    assert not fits("trace", {**written, "tool_calls": [{"name": "x", "arguments": None, "outcome": "fine"}]})
