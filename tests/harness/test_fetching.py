"""Steps and models that read a resource or take a prompt: real exchanges, which are no tool calls."""

import json
from pathlib import Path

import pytest

from harness.agentfile import load_agent
from harness.hiding import make_hiding
from harness.modelagent import ModelAgent
from harness.scenario import load_scenario
from harness.targets.fixtures import fixture_offers
from harness.trace import Trace
from harness.tracefile import load_trace
from harness.trial import TrialPlan, run_trial
from harness.verdict import Verdict
from proxy.spans import JSON
from tests.harness.runs import write_scenario

URI = "files:///guide.md"
RESOURCE, PROMPT = f"mcp/files/resource:{URI}", "mcp/files/prompt:summarize_file"
TOLD: JSON = {"path": "guide.md"}


def tried(folder: Path, agent: JSON, **fields: JSON) -> tuple[Verdict, Trace]:
    """One trial over a folder with one file, whose text is to be written into another one."""
    (folder / "seed.yaml").write_text(json.dumps({"files": [{"path": "guide.md", "text": "release 3.8"}]}))
    (folder / "agent.yaml").write_text(
        json.dumps({"transport": "in_process", **agent} if isinstance(agent, dict) else agent)
    )
    path = write_scenario(
        folder,
        servers={"files": {"fixture": "files", "seed": "seed.yaml"}},
        assertions=[
            {"type": "tool_called", "tool": "mcp/files/write_file", "arguments": {"content": "release 3.8"}, "max": 1}
        ],
        limits={"tool_calls": 1},
        **fields,
    )
    scenario = load_scenario(path, fixture_offers())
    plan = TrialPlan("run", folder / "run", make_hiding({}, bytes(32)), scenario, load_agent(folder / "agent.yaml"), 1)
    verdict = run_trial(plan).verdict
    return verdict, load_trace(folder / "run" / "small" / "1" / "trace.json")


def taken(trace: Trace) -> list[tuple[JSON, JSON]]:
    """Names and outcomes of what was read and got."""
    found = [event.fields for event in trace.events if event.type in ("mcp_resource_read", "mcp_prompt_get")]
    return [(fields["name"], fields["outcome"]) for fields in found]


def test_steps_read_a_resource_and_take_a_prompt_and_later_ones_use_what_they_say(tmp_path: Path) -> None:
    write: JSON = {"call": "mcp/files/write_file", "arguments": {"path": "a.txt", "content": "${guide.text}"}}
    steps: list[JSON] = [
        {"read": RESOURCE, "as": "guide"},
        {"prompt": PROMPT, "arguments": TOLD, "as": "asked"},
        {"read": f"{RESOURCE}.none", "expect_error": True, "as": "none"},
        write,
        {"say": "${asked.text} ${none.is_error}"},
    ]
    verdict, trace = tried(tmp_path, {"steps": steps})
    assert verdict.result == "pass", verdict
    assert taken(trace) == [(RESOURCE, "ok"), (PROMPT, "ok"), (f"{RESOURCE}.none", "protocol_error")]
    assert len(trace.tool_calls) == 1
    said = str(trace.messages[-1].content)
    assert said.startswith("Summarise the following file")
    assert said.endswith("release 3.8 true")


def test_a_resource_that_is_not_there_is_a_crash_unless_the_step_says_so(tmp_path: Path) -> None:
    verdict, trace = tried(tmp_path, {"steps": [{"read": f"{RESOURCE}.none"}]})
    assert verdict.status == "agent_crash"
    assert f"step 1 ({RESOURCE}.none) failed" in verdict.reason
    assert taken(trace) == [(f"{RESOURCE}.none", "protocol_error")]


def test_policy_speaks_of_what_a_step_reads(tmp_path: Path) -> None:
    policy: JSON = {"rules": [{"deny": "mcp/files/resource:*"}]}
    _, trace = tried(tmp_path, {"steps": [{"read": RESOURCE, "expect_error": True}]}, policy=policy)
    assert taken(trace) == [(RESOURCE, "denied")]


def test_a_model_is_offered_resources_and_prompts_as_tools_and_its_uses_of_them_are_no_calls(tmp_path: Path) -> None:
    script: list[JSON] = [
        {"when": {"not_called": "read_resource"}, "call": "read_resource", "arguments": {"uri": URI}},
        {"at_most": 1, "call": "get_prompt", "arguments": {"name": "summarize_file", "arguments": TOLD}},
        {"at_most": 1, "call": "read_resource", "arguments": {"uri": f"{URI}.none"}},
        {"at_most": 1, "call": "write_file", "arguments": {"path": "a.txt", "content": "release 3.8"}},
        {"when": {"said": "release 3.8"}, "say": "done"},
    ]
    (tmp_path / "script.yaml").write_text(json.dumps({"script": script}))
    verdict, trace = tried(tmp_path, {"model": {"provider": "scripted", "script": "script.yaml"}})
    assert verdict.result == "pass", verdict
    assert taken(trace) == [(RESOURCE, "ok"), (PROMPT, "ok"), (f"{RESOURCE}.none", "protocol_error")]
    assert isinstance(load_agent(tmp_path / "agent.yaml"), ModelAgent)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"read": "files:///guide.md"}, "steps[0].read: 'files:///guide.md' is no canonical name of a resource"),
        ({"read": "mcp/files/guide.md"}, "write mcp/SERVER/resource:URI"),
        ({"prompt": "mcp/files/prompt:"}, "write mcp/SERVER/prompt:NAME"),
        ({"prompt": "mcp/other/prompt:x"}, "the scenario has no server 'other'; its servers are: files"),
        ({"prompt": PROMPT, "arguments": {"path": 1}}, "steps[0].arguments.path: expected text, not the number 1"),
        ({"prompt": PROMPT, "arguments": {"path": "${x.text}"}}, "names no earlier step's `as`"),
        ({"read": RESOURCE, "arguments": {}}, "steps[0].arguments: unknown field"),
        ({"read": RESOURCE, "as": "a b"}, "'a b' is no name"),
        ({"read": RESOURCE, "prompt": PROMPT}, "exactly one of call, read, prompt, say, goal"),
    ],
)
def test_what_is_wrong_with_such_a_step_is_said(step: JSON, says: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps({"steps": [step]}))
    with pytest.raises(ValueError, match=r"agent\.yaml:1: ") as caught:
        load_agent(path, {"files": None})
    assert says in str(caught.value)
