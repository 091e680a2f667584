"""The architectures at work: limits, prompts, and tools that a model uses wrongly."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.architectures import prompts
from harness.models.model import Request, Told
from harness.models.scripted import ScriptedModel
from proxy.spans import JSON
from tests.harness.architectures.trials import Tried, agent_file, credit_hold, try_once

READ: dict[str, JSON] = {"at_most": 1, "call": "get_customer_profile", "arguments": {"customer_id": "CUST-004"}}
LOOPING: list[JSON] = [{"call": "get_customer_profile", "arguments": {"customer_id": "CUST-004"}}]
PRICED: JSON = {"prices": {"input": 1, "output": 1, "cached": 0}}
COUNTED: list[JSON] = [
    {**READ, "usage": {"in": 90, "out": 10, "cached": 5}},
    {"say": "done", "usage": {"in": 90, "out": 10, "cached": 5}},
]


@pytest.mark.parametrize(
    ("script", "fields", "limits", "said"),
    [
        (LOOPING, {"rounds": 3}, {}, "agent took 3 answers of its model"),
        (LOOPING, {}, {"tool_calls": 2}, "would make call 3; limits.tool_calls is 2"),
        (COUNTED, {}, {"tokens": 200}, "took 210 tokens; limits.tokens is 200"),
        (COUNTED, {"limits": {"tokens": 150}}, {"tokens": 1000}, "limits.tokens is 150"),
        (COUNTED, {"model": PRICED}, {"cost": 0.00015}, "limits.cost is 0.00015"),
    ],
    ids=["rounds", "tool calls", "tokens", "the smaller of two", "cost"],
)
def test_a_limit_ends_the_trial(
    script: list[JSON],
    fields: dict[str, JSON],
    limits: dict[str, JSON],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = credit_hold(tmp_path, limits={"seconds": 30, **limits})
    tried = try_once(scenario, agent_file(tmp_path, script, **fields), tmp_path, monkeypatch)
    assert (tried.verdict.status, tried.verdict.category) == ("limit", "incomplete"), tried.verdict
    assert said in tried.verdict.reason


def test_time_ends_the_trial_in_the_middle_of_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = credit_hold(tmp_path, limits={"seconds": 1})
    script: list[JSON] = [{"fail": {"status": 429, "retry_after": 50}}]
    tried = try_once(scenario, agent_file(tmp_path, script), tmp_path, monkeypatch)
    assert tried.verdict.status == "agent_timeout"
    assert [event.fields["status"] for event in tried.events("model_call")] == [429]


def wrong(rules: list[JSON], fields: dict[str, JSON], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tried:
    return try_once(credit_hold(folder), agent_file(folder, rules, **fields), folder, monkeypatch)


@pytest.mark.parametrize(
    ("rules", "fields", "answered"),
    [
        ([{"at_most": 1, "call": "no_such_tool"}, {"say": "${last}"}], {}, "There is no tool 'no_such_tool'."),
        (
            [
                {"at_most": 1, "call": "hand_over", "arguments": {"tier": "x", "remark": "y"}},
                {"when": {"offered": "hand_over"}, "say": "${last}"},
            ],
            {"architecture": "peer_to_peer", "handoff": "rigid"},
            "The hand-over was not taken: there is no field remark",
        ),
        (
            [{"at_most": 1, "call": "delegate", "arguments": {"worker": "nobody"}}, {"say": "${last}"}],
            {"architecture": "supervisor_worker"},
            "Give worker (crm_worker, ticketing_worker) and instruction",
        ),
    ],
    ids=["a tool that is not there", "a form with another field", "a worker that is not there"],
)
def test_a_tool_that_is_used_wrongly_answers_with_an_error_and_the_agent_goes_on(
    rules: list[JSON], fields: dict[str, JSON], answered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = wrong(rules, fields, tmp_path, monkeypatch)
    assert tried.verdict.status == "completed"
    said = [message.content for message in tried.trace.messages if message.role == "assistant"]
    assert answered in str(said[-1]) or prompts.NUDGE in str(said[-1])
    assert tried.trace.tool_calls == ()


def test_a_field_of_a_form_has_room_for_one_short_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long: dict[str, JSON] = {"customer_id": "x" * 61, "name": "", "tier": "", "status": ""}
    rules: list[JSON] = [
        {"at_most": 1, "call": "hand_over", "arguments": long},
        {"when": {"said": "has room for one line"}, "at_most": 1, "call": "hand_over", "fill": True},
        {"say": "${last}"},
    ]
    tried = wrong(rules, {"architecture": "peer_to_peer", "handoff": "rigid"}, tmp_path, monkeypatch)
    # The first was not taken; the second, which repeats the long value, was neither.
    assert tried.events("handoff") == []


def test_a_peer_that_never_hands_over_is_asked_once_and_its_answer_is_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = wrong([{"say": "I am done."}], {"architecture": "peer_to_peer"}, tmp_path, monkeypatch)
    assert len(tried.events("model_call")) == 2
    assert tried.events("handoff") == []
    assert tried.verdict.result == "fail"


def test_a_goal_is_the_agents_own_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = wrong([{"say": "Status: open", "goal": "help"}], {}, tmp_path, monkeypatch)
    [goal] = tried.events("goal")
    assert (goal.fields, goal.reported) == ({"id": "help", "agent": "agent"}, True)


GIVEAWAY = re.compile(
    r"credit|\bholds?\b(?!s one)|on_hold|escalat|profile|ticket(?!ing)|customer(?!_id)", re.IGNORECASE
)


@pytest.mark.parametrize("fields", [
    {}, {"architecture": "peer_to_peer"}, {"architecture": "peer_to_peer", "handoff": "rigid"},
    {"architecture": "supervisor_worker"}, {"architecture": "debate_critic"},
])  # fmt: skip
def test_nothing_that_we_tell_an_agent_gives_the_answer_of_the_task_away(
    fields: Mapping[str, JSON], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    ask = ScriptedModel.ask

    async def overhear(model: ScriptedModel, request: Request) -> object:
        ours = [tool for tool in request.tools if tool.name in ("hand_over", "delegate")]
        heard = [message.text for message in request.messages[:1] if isinstance(message, Told)]
        told.extend([request.system, *(json.dumps([tool.description, dict(tool.parameters)]) for tool in ours)])
        if request.agent != "critic" and not request.agent.endswith("_worker"):
            told.extend(text.replace(request.task, "") for text in heard if "hands over" not in text)
        return await ask(model, request)

    monkeypatch.setattr(ScriptedModel, "ask", overhear)
    scenario = credit_hold(tmp_path)
    try_once(scenario, agent_file(tmp_path, "copying", **fields), tmp_path, monkeypatch)
    assert told
    for text in told:
        assert GIVEAWAY.search(text) is None, text


def test_none_of_our_words_speaks_of_the_task() -> None:
    spoken = [prompts.ALONE, prompts.CRITIC, prompts.NUDGE, prompts.to_revise(""), prompts.to_review("", "", "")]
    spoken += [prompts.supervisor([("a", ("x",))]), prompts.worker("a", ("x", "y")), prompts.handed_over("", "a", "")]
    spoken += [prompts.peer("a", (), "b", ("x",)), prompts.peer("a", ("x",), None, ())]
    for text in spoken:
        assert GIVEAWAY.search(text) is None, text
