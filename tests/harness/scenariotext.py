"""Scenarios as texts, and what is read from them or wrong with them."""

from pathlib import Path

import pytest

from harness.scenario import Scenario, ScenarioError, load_scenario

WHOLE = """\
id: a.whole-one_1
title: no
category: task
labels: {difficulty: on}
input: {user_message: do it, context: [{source: mail, trust: untrusted}], more: 1}
servers:
  crm: {fixture: crm, trust: internal}
  ticketing: {fixture: ticketing, seed: seeds/t.yaml}
  own: {command: [run, it], env: {A: b}, trust: untrusted}
  far: {url: "https://example.org/mcp", trust: trusted}
policy: {default: allow, rules: [{deny: mcp/ticketing/delete_*}], client_requests: {roots: allow}}
agent: {scripted: agents/a.yaml}
trials: 3
limits: {seconds: 1.5, tool_calls: 5}
facts:
  - id: hold
    value: true
    known: {server: crm, tool: get_customer_profile, arguments: {customer_id: CUST-004}, path: $.credit_hold}
    stated_as: [credit hold]
    before: {server: ticketing, tool: update_ticket}
expected: {denied_tools: [mcp/elsewhere/x], anything: [1]}
assertions:
  - {type: tool_called, tool: mcp/crm/get_customer_profile}
  - {type: state, server: ticketing, query: select 1, equals: [[1]]}
  - {type: state_unchanged, except: [{server: ticketing, table: tickets, where: {id: 1}}]}
  - {type: judged, rubric: well done}
reference: [{call: mcp/crm/get_customer_profile, as: p}, {say: "${p.text}"}]
"""
BARE = "id: a\ntitle: t\ncategory: task\ninput: {}\nassertions: [{type: no_denied_tool_call}]\n"


def write(folder: Path, text: str) -> Path:
    for name, content in {
        "agents/a.yaml": "steps: [{call: mcp/crm/get_customer_profile}]",
        "agents/c.yaml": "command: [run]",
        "seeds/t.yaml": "tickets: [{id: 1, customer_id: A, description: no}]",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    path = folder / "s.yaml"
    path.write_text(text)
    return path


def load(folder: Path, text: str) -> Scenario:
    return load_scenario(write(folder, text))


def problems(folder: Path, text: str) -> list[tuple[int | None, str, str]]:
    path = write(folder, text)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert all(problem.file == str(path) for problem in caught.value.problems)
    return [(problem.line, problem.field, problem.message) for problem in caught.value.problems]
