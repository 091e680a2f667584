import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.model import Message, ModelError, Reply, Request, Told, ToolAnswer, ToolOffer, ToolUse
from harness.models.script import Script, read_script
from harness.models.scripted import ScriptedModel
from harness.models.seen import seen
from proxy.problem import Problem
from proxy.spans import JSON

LOOK_UP = ToolOffer("look_up", "", {"type": "object", "properties": {"id": {"type": "string"}}})
FORM = ToolOffer(
    "hand_over", "", {"type": "object", "properties": {"id": {"type": "string"}, "hold": {"type": "string"}}}
)
NOTE = ToolOffer("hand_over", "", {"type": "object", "properties": {"note": {"type": "string"}}})
USE = ToolUse("1", "look_up", {"id": "C-4"})
FOUND = ToolAnswer(USE, '{"name": "Ann", "hold": true, "tickets": [{"id": 7, "text": "down"}]}')
READ: tuple[Message, ...] = (Told("Do the task."), Reply("", (USE,)), FOUND)


def script(folder: Path, *rules: JSON) -> Script:
    problems: list[Problem] = []
    file = folder / "s.yaml"
    file.write_text(json.dumps({"script": rules}))
    found = read_script(file, problems)
    assert found is not None, problems
    return found


def request(*messages: Message, tools: tuple[ToolOffer, ...] = (LOOK_UP,), agent: str = "agent") -> Request:
    return Request(agent, "", messages, tools, "Do the task.", 1)


def answer(folder: Path, asked: Request, *rules: JSON) -> Reply:
    return asyncio.run(ScriptedModel("s", script(folder, *rules)).ask(asked))


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({}, True),
        ({"agent": "agent"}, True),
        ({"agent": ["other"]}, False),
        ({"offered": "look_up"}, True),
        ({"offered": "delete"}, False),
        ({"called": "look_up"}, True),
        ({"not_called": "look_up"}, False),
        ({"said": "An+"}, True),
        ({"said": "task"}, False),
        ({"not_said": "Ann"}, False),
        ({"knows": {"hold": True}}, True),
        ({"knows": {"hold": "TRUE"}}, True),
        ({"knows": {"hold": False}}, False),
        ({"knows": {"nothing": 1}}, False),
        ({"not_known": ["hold"]}, False),
        ({"chance": 0}, False),
    ],
)
def test_a_rule_fits_when_all_that_it_asks_holds(when: JSON, fits: bool, tmp_path: Path) -> None:
    said = answer(tmp_path, request(*READ), {"when": when, "say": "this one"}, {"say": "another"}).text
    assert (said == "this one") is fits


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("${hold}", True),
        ("${look_up.text}", "down"),
        ("${name}: ${hold}", "Ann: true"),
        ("${id}", "C-4"),
        ("${task}", "Do the task."),
        ("${last}", FOUND.text),
        ("${everything}", "id = C-4\nname = Ann\nhold = true\nid = 7\ntext = down"),
    ],
)
def test_arguments_are_made_of_what_was_seen_and_a_whole_text_keeps_its_type(
    template: str, filled: JSON, tmp_path: Path
) -> None:
    reply = answer(tmp_path, request(*READ), {"call": "look_up", "arguments": {"x": [template]}})
    assert reply.uses[0].arguments == {"x": [filled]}


def test_the_task_is_known_only_to_an_agent_that_was_told_it(tmp_path: Path) -> None:
    asked = replace(request(), messages=(Told("Please go."),))
    with pytest.raises(ModelError, match="nobody has told"):
        answer(tmp_path, asked, {"say": "${task}"})


def test_a_form_is_filled_by_the_names_of_its_fields_and_a_note_takes_everything(tmp_path: Path) -> None:
    rule: JSON = {"call": "hand_over", "fill": True}
    assert answer(tmp_path, request(*READ, tools=(FORM,)), rule).uses[0].arguments == {"id": "C-4", "hold": "true"}
    note = answer(tmp_path, request(*READ, tools=(NOTE,)), rule).uses[0].arguments["note"]
    assert "hold = true" in str(note)


def test_what_is_to_be_dropped_is_in_no_form_and_no_note(tmp_path: Path) -> None:
    rule: JSON = {"call": "hand_over", "fill": True, "drop": ["hold"]}
    assert answer(tmp_path, request(*READ, tools=(FORM,)), rule).uses[0].arguments == {"id": "C-4", "hold": ""}
    assert "hold" not in str(answer(tmp_path, request(*READ, tools=(NOTE,)), rule).uses[0].arguments)


def test_a_call_may_be_made_several_times_at_once(tmp_path: Path) -> None:
    uses = answer(tmp_path, request(*READ), {"call": "look_up", "times": 3}).uses
    assert [use.tool for use in uses] == ["look_up"] * 3
    assert len({use.id for use in uses}) == 3


def test_a_goal_is_stated_beside_what_else_is_done(tmp_path: Path) -> None:
    assert answer(tmp_path, request(), {"say": "x", "goal": "help"}).goal == "help"
    assert answer(tmp_path, request(), {"call": "look_up", "goal": "help"}).goal == "help"
    assert answer(tmp_path, request(), {"say": "x"}).goal is None


def test_at_most_counts_in_each_conversation_by_itself(tmp_path: Path) -> None:
    model = ScriptedModel("s", script(tmp_path, {"at_most": 1, "say": "first"}, {"say": "then"}))
    asked = request(Told("x"))
    both = [asked, asked, replace(asked, conversation=2)]
    assert [asyncio.run(model.ask(one)).text for one in both] == ["first", "then", "first"]


def test_a_failure_has_the_status_of_a_provider_and_no_rule_that_fits_is_one_too(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="slow down") as raised:
        answer(tmp_path, request(), {"fail": {"status": 429, "message": "slow down", "retry_after": 2}})
    assert (raised.value.status, raised.value.again, raised.value.after) == (429, True, 2)
    with pytest.raises(ModelError, match=r"s\.yaml: no rule fits what agent has seen"):
        answer(tmp_path, request(), {"when": {"agent": "x"}, "say": "y"})
    with pytest.raises(ModelError, match=r"\$\{tier\}, which agent has not seen"):
        answer(tmp_path, request(), {"say": "The tier is ${tier}."})


def test_the_tokens_of_an_answer_are_what_the_script_says_and_else_not_known(tmp_path: Path) -> None:
    counted = answer(tmp_path, request(), {"say": "x", "usage": {"in": 10, "out": 2, "cached": 5}}).usage
    assert (counted.input, counted.output, counted.cached, counted.total) == (10, 2, 5, 17)
    assert answer(tmp_path, request(), {"say": "x"}).usage.input is None


def drawn(folder: Path, seed: int, trial: int) -> list[str]:
    rules = script(folder, {"when": {"chance": 0.5}, "say": "heads"}, {"say": "tails"})
    model = ScriptedModel("s", rules, seed)
    asked = replace(request(), trial=trial)
    return [asyncio.run(model.ask(asked)).text for _ in range(64)]


def test_chance_is_the_same_for_a_seed_and_a_trial_and_another_for_others(tmp_path: Path) -> None:
    first = drawn(tmp_path, 1, 1)
    assert first == drawn(tmp_path, 1, 1)
    assert first != drawn(tmp_path, 2, 1)
    assert first != drawn(tmp_path, 1, 2)
    assert 10 < first.count("heads") < 54


WORDS = st.text("abcdefgh_", min_size=1, max_size=8).filter(lambda word: not word.isspace())
VALUES = st.one_of(
    st.booleans(), st.integers(-(10**6), 10**6), st.text("abc xyz-", min_size=1).map(str.strip).filter(bool)
)


@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=5))
def test_all_that_one_agent_tells_another_that_one_knows(told: dict[str, JSON]) -> None:
    source = seen(request(Reply("", (USE,)), ToolAnswer(USE, json.dumps(told))))
    heard = seen(request(Told(f"Somebody hands over:\n{source.everything(())}")))
    for key, value in told.items():
        found = heard.find(key)
        assert found is not None
        # A text that spells a number or a word of JSON is heard as that.
        assert found.value == value or json.dumps(found.value) == value


@given(st.text(max_size=200))
def test_no_text_breaks_the_reading_of_it(text: str) -> None:
    seen(request(Told(text), Reply("", (USE,)), ToolAnswer(USE, text)))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("[]", "this may not be empty"),
        ("[{}]", "exactly one of call, say and fail"),
        ("[{say: x, call: y}]", "exactly one of call, say and fail"),
        ("[{say: x, times: 2}]", "arguments, fill and times belong to call"),
        ("[{say: x, when: {said: '('}}]", "is no regular expression"),
        ("[{say: '${a b}'}]", "is no name"),
        ("[{say: x, when: {knows: {a: [1]}}}]", "expected a text, a number"),
        ("[{say: x, nonsense: 1}]", "unknown field"),
        ("[{fail: {status: 200}}]", "at least 400"),
    ],
)
def test_what_is_wrong_with_a_script_is_said(rules: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"script: {rules}\n")
    problems: list[Problem] = []
    assert read_script(file, problems) is None
    assert said in "\n".join(map(str, problems))
