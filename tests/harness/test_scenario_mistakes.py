"""A scenario that is wrong is refused with file, line, field and what to do."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.scenario import ScenarioError, load_scenario
from proxy.problem import Path as FieldPath
from proxy.spans import JSON
from proxy.yamlfile import load_document
from tests.harness.runs import write_scenario
from tests.harness.scenariotext import BARE, WHOLE, load, problems, write

ONE = "servers: {crm: {fixture: crm}}\n"
MARKERS = "{memory_isolation: {forbidden_markers: [ok, X]}}"
LIST = "[{type: no_denied_tool_call}]"


@pytest.mark.parametrize(
    ("more", "line", "field", "says"),
    [
        ("categry: task", 6, "categry", "unknown field; here may stand id, title"),
        ("id: b", 6, "", "'id' is repeated"),
        ("severity: 12", 6, "severity", "'low'"),
        ("trials: true", 6, "trials", "whole number"),
        ("trials: 0", 6, "trials", "at least 1"),
        ("labels: {a: true}", 6, "labels.a", "expected text, not the truth value true; put it in quotes"),
        ("labels: {a: 12}", 6, "labels.a", "expected text, not the number 12; put it in quotes"),
        ("labels: {a: [b]}", 6, "labels.a", "expected text, not a list"),
        ("limits: {second: 1}", 6, "limits.second", "unknown field"),
        ("limits: {seconds: 0}", 6, "limits.seconds", "more than 0"),
        ("target: {adapter: 1}", 6, "target.adapter", "expected text"),
        ("expected: {denied_tools: x}", 6, "expected.denied_tools", "expected a list"),
        ("expected: {denied_tools: [' ']}", 6, "expected.denied_tools", "may not be blank"),
        ("expected: {allowed_tools: [true]}", 6, "expected.allowed_tools[0]", "expected text"),
        ("servers: [crm]", 6, "servers", "expected a map"),
        ("servers:", 6, "servers", "expected a map"),
        ("servers:\n  a b: {fixture: crm}", 7, "servers.a b", "no server id"),
        ("servers:\n  ..: {fixture: crm}", 7, "servers...", "dots alone"),
        ("servers:\n  crm: crm", 7, "servers.crm", "expected a map with fixture, seed"),
        ("servers:\n  crm: {}", 7, "servers.crm", "exactly one of fixture, command and url"),
        ("servers:\n  crm: {fixture: crm, url: 'http://x'}", 7, "servers.crm", "exactly one"),
        ("servers:\n  crm: {fixture: true}", 7, "servers.crm.fixture", "expected text"),
        ("servers:\n  crm: {fixture: crm, trust: low}", 7, "servers.crm.trust", "'trusted'"),
        ("servers:\n  crm:\n    fixture: crm\n    seed: none.yaml", 9, "servers.crm.seed", "there is no file"),
        ("servers:\n  crm: {command: [x], seed: seeds/t.yaml}", 7, "servers.crm.seed", "only a fixture has seed"),
        ("servers:\n  crm: {fixture: crm, env: {A: b}}", 7, "servers.crm.env", "only a command has env"),
        ("servers:\n  crm: {command: run}", 7, "servers.crm.command", "expected a list"),
        ("servers:\n  crm: {url: 'ftp://x'}", 7, "servers.crm.url", "begins with http:// or https://"),
        ("policy:", 6, "policy", "expected a map"),
        ("policy:\n  rules:\n  - deny: crm", 8, "policy.rules[0].deny", "does not start with mcp/"),
        ("policy: {file: none.yaml}", 6, "policy.file", "there is no file"),
        ("policy: {file: " + "x" * 300 + "}", 6, "policy.file", "is no path"),
        ("policy: {file: a, mode: enforce}", 6, "policy.mode", "unknown field"),
        (ONE + "policy:\n  rules:\n  - allow: mcp/crm/*\n  - deny: mcp/crn/*", 10, "policy.rules[1].deny", "'crn'"),
        ("agent: agents/a.yaml", 6, "agent", "expected a map with one of scripted, command"),
        ("agent: {}", 6, "agent", "exactly one of scripted, command, model, http"),
        ("agent: {scripted: none.yaml}", 6, "agent.scripted", "there is no file"),
        (ONE + "agent: {scripted: agents/c.yaml}", 7, "agent.scripted", "has a command and no steps"),
        ("reference: [{call: mcp/crm/x}]", 6, "reference[0].call", "no server 'crm'; its servers are: none"),
        ("facts: [{id: a, value: 1, known: {server: x, tool: y, path: z}}]", 6, "facts[0].known.path", "a path such"),
    ],
)  # fmt: skip
def test_a_scenario_that_is_wrong_names_file_line_and_field(
    tmp_path: Path, more: str, line: int, field: str, says: str
) -> None:
    (found,) = problems(tmp_path, BARE + more)
    assert found[:2] == (line, field)
    assert says in found[2]


@pytest.mark.parametrize(
    ("old", "new", "place", "says"),
    [
        ("id: a", "id: a b", (1, "id"), "is made of"),
        ("id: a", "id: ..", (1, "id"), "dots alone"),
        ("id: a", "id: 12", (1, "id"), "in quotes"),
        ("title: t", "title: true", (2, "title"), "expected text, not the truth value true; put it in quotes"),
        ("title: t", "title: 12", (2, "title"), "expected text, not the number 12; put it in quotes"),
        ("title: t", "title: [t]", (2, "title"), "expected text, not a list"),
        ("title: t", "title:", (2, "title"), "expected text, not nothing"),
        ("title: t\n", "", (1, "title"), "missing"),
        ("category: task", "category: other", (3, "category"), "not the text 'other'"),
        ("category: task", "category: goal_hijack", (1, "severity"), "category task only"),
        ("input: {}", "input: x", (4, "input"), "expected a map"),
        ("input: {}", "input: {user_message: true}", (4, "input.user_message"), "expected text"),
        ("input: {}", "input: {context: [{trust: a}]}", (4, "input.context[0].source"), "missing"),
        (LIST, "[]", (5, "assertions"), "may not be empty"),
        (LIST, "[x]", (5, "assertions[0]"), "a map with a type"),
        (LIST, "[{type: tool_called, tol: x, tool: y}]", (5, "assertions[0].tol"), "here may stand type, id"),
        (LIST, "[{type: memory_isolation}]", (1, "expected.memory_isolation.forbidden_markers"), "one"),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_or_missing_is_named(
    tmp_path: Path, old: str, new: str, place: tuple[int, str], says: str
) -> None:
    assert old in BARE
    (found,) = problems(tmp_path, BARE.replace(old, new))
    assert found[:2] == place
    assert says in found[2]


@pytest.mark.parametrize(
    ("assertion", "field"),
    [
        ("{type: tool_called, tool: mcp/crn/get}", "tool"),
        ("{type: tool_not_called, tool: mcp/crn/get}", "tool"),
        ("{type: state, server: crn, query: select 1, equals: [[1]]}", "server"),
        ("{type: state_unchanged, servers: [crm, crn]}", "servers[1]"),
        ("{type: state_unchanged, except: [{server: crn, table: t}]}", "except[0].server"),
    ],
)
def test_an_assertion_names_a_server_of_the_scenario(tmp_path: Path, assertion: str, field: str) -> None:
    text = BARE.replace("{type: no_denied_tool_call}", assertion) + "servers: {crm: {fixture: crm}}"
    (found,) = problems(tmp_path, text)
    assert found[:2] == (5, f"assertions[0].{field}")
    assert "no server 'crn'" in found[2]


def test_everything_that_is_wrong_is_said_at_once_and_in_order(tmp_path: Path) -> None:
    text = (
        BARE.replace("title: t", "title: 1").replace("task", "tusk") + "servers: {a: {}}\nagent: {}\npolicy: x\nzzz: 1"
    )
    found = problems(tmp_path, text)
    assert [field for _, field, _ in found] == ["title", "category", "servers.a", "agent", "policy", "zzz"]


def test_what_is_wrong_in_a_file_that_the_scenario_names_is_said_of_that_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        BARE + "servers: {crm: {fixture: crm, seed: s2.yaml}}\npolicy: {file: p.yaml}\nagent: {scripted: a.yaml}",
    )
    (tmp_path / "s2.yaml").write_text("customers:\n- {id: [1]}\n- x\nmore: 1")
    (tmp_path / "p.yaml").write_text("rules:\n- deny: mcp/other/*\n")
    (tmp_path / "a.yaml").write_text("steps:\n- call: mcp/crn/get\n")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert [(Path(problem.file).name, problem.line, problem.field) for problem in caught.value.problems] == [
        ("s2.yaml", 2, "customers[0].id"),
        ("s2.yaml", 3, "customers[1]"),
        ("s2.yaml", 4, "more"),
        ("p.yaml", 2, "rules[0].deny"),
        ("a.yaml", 2, "steps[0].call"),
    ]


@pytest.mark.parametrize(
    ("assertion", "expected", "field"),
    [
        ("memory_isolation", MARKERS.replace("X", "ACME-7"), "memory_isolation.forbidden_markers[1]"),
        ("memory_isolation", MARKERS.replace("X", "ａｃｍｅ-7"), "memory_isolation.forbidden_markers[1]"),
        ("no_secret_disclosure", "{secrets: [{name: k, value: acme-7}]}", "secrets[0].value"),
        ("no_secret_disclosure", "{secrets: [{name: k}]}", "secrets[0]"),
    ],
)  # fmt: skip
def test_a_marker_that_the_task_itself_contains_is_an_error(
    tmp_path: Path, assertion: str, expected: str, field: str
) -> None:
    text = BARE.replace("no_denied_tool_call", assertion).replace("input: {}", "input: {user_message: about Acme-7.}")
    (found,) = problems(tmp_path, text + f"expected: {expected}")
    assert found[:2] == (6, f"expected.{field}")
    assert "acme" not in found[2].casefold()
    load(tmp_path, text.replace(assertion, "no_denied_tool_call") + f"expected: {expected}")


def places(value: JSON, path: FieldPath = ()) -> list[FieldPath]:
    inner: list[tuple[str | int, JSON]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    if isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(found for step, item in inner for found in places(item, (*path, step)))]


def changed(value: JSON, path: FieldPath, new: JSON) -> JSON:
    if not path:
        return new
    match value, path[0]:
        case dict(), str() as key:
            return {**value, key: changed(value[key], path[1:], new)}
        case list(), int() as place:
            return [changed(item, path[1:], new) if i == place else item for i, item in enumerate(value)]
        case _:
            raise AssertionError(path)


DATA = load_document(WHOLE, "whole").data
ODD: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from(places(DATA)), ODD)
@settings(max_examples=60, deadline=None)
def test_whatever_stands_in_a_field_it_is_read_or_named(
    tmp_path_factory: pytest.TempPathFactory, path: FieldPath, new: JSON
) -> None:
    folder = tmp_path_factory.mktemp("s")
    file = write(folder, json.dumps(changed(DATA, path, new)))
    try:
        load_scenario(file)
    except ScenarioError as error:
        named = [problem for problem in error.problems if problem.file == str(file)]
        assert named or path[:1] in (("servers",), ("policy",), ("agent",))
        assert all(problem.line == 1 for problem in named)


@pytest.mark.parametrize("name", ["judged", "judged#2", "state_unexplained", "mine"])
def test_an_id_that_another_finding_has_is_an_error(tmp_path: Path, name: str) -> None:
    ids = ("", "", ", id: mine", f", id: {name}")
    kinds = f"[{', '.join(f'{{type: judged, rubric: r{one}}}' for one in ids)}]"
    with pytest.raises(ScenarioError, match=rf"assertions\[3\]\.id: another finding is called '{name}' already"):
        load(tmp_path, BARE.partition("assertions")[0] + f"assertions: {kinds}\n")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"limits": {"seconds": 1e300}}, "limits.seconds"),
        ({"limits": {"seconds": 604_801}}, "limits.seconds"),
        ({"servers": {"a": {"command": ["x"], "env": {"A=B": "c"}}}}, "no name of a variable"),
        ({"servers": {"a": {"command": ["x"], "env": {"": "c"}}}}, "no name of a variable"),
        ({"servers": {"a": {"command": ["x"], "env": {"A\0": "c"}}}}, "U+0000"),
        ({"servers": {"a": {"command": ["x"], "env": {"A": "c\0"}}}}, "U+0000"),
        ({"servers": {"a": {"command": ["x", "y\0"]}}}, "U+0000"),
        ({"agent": {"command": ["x", "y\0"]}}, "U+0000"),
    ],
)
def test_what_no_system_can_run_is_an_error_of_the_scenario(tmp_path: Path, fields: dict[str, JSON], said: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(said)):
        load_scenario(write_scenario(tmp_path, **fields))
