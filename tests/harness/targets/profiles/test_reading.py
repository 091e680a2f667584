"""What the agents print becomes messages and tokens."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.targets.profiles.known import PROFILES, ProfileName
from harness.targets.profiles.launch import Tokens, Told, named_model
from proxy.spans import JSON
from tests.harness.targets.profiles import outputs

RECORDED: dict[ProfileName, str] = {
    "claude-code": outputs.CLAUDE_CODE,
    "codex": outputs.CODEX,
    "gemini-cli": outputs.GEMINI_CLI,
}
LEAVES: tuple[JSON, ...] = (None, True, -1, 0, 1.5, 10**30, "", "text", [], [None], {}, {"type": "text"})


def changed(draw: st.DrawFn, value: JSON) -> JSON:
    """The value with another one somewhere in it."""
    stop = draw(st.integers(0, 5)) == 0
    match value:
        case dict() if value and not stop:
            key = draw(st.sampled_from(sorted(value)))
            return {**value, key: changed(draw, value[key])}
        case list() if value and not stop:
            at = draw(st.integers(0, len(value) - 1))
            return [*value[:at], changed(draw, value[at]), *value[at + 1 :]]
        case _:
            return draw(st.sampled_from(LEAVES))


@st.composite
def broken(draw: st.DrawFn) -> tuple[ProfileName, str]:
    """The output of an agent of which some values, at any depth, are others."""
    name = draw(st.sampled_from(sorted(RECORDED)))
    events: list[JSON] = [json.loads(line) for line in RECORDED[name].splitlines() if line.startswith("{")]
    for at in draw(st.lists(st.integers(0, len(events) - 1), min_size=1, max_size=3)):
        events[at] = changed(draw, events[at])
    return name, "\n".join(json.dumps(event) for event in events)


@pytest.mark.parametrize(
    ("name", "output", "told"),
    [
        (
            "claude-code",
            outputs.CLAUDE_CODE,
            Told(("I look.", "Ticket 1 is about a server."), Tokens(275, 120, 21)),
        ),
        (
            "claude-code",
            outputs.CLAUDE_CODE_FAILED,
            Told(("API Error: 400 no such model",), Tokens(0, 0, 0), failed=True),
        ),
        ("codex", outputs.CODEX, Told(("I looked.", "It is about a server."), Tokens(270, 120, 21))),
        ("codex", outputs.CODEX_FAILED, Told(failed=True)),
        (
            "gemini-cli",
            outputs.GEMINI_CLI,
            Told(("I look.", "It is about a server."), Tokens(270, 120, 21), model="auto"),
        ),
        ("gemini-cli", outputs.GEMINI_CLI_FAILED, Told((), Tokens(0, 0, 0), failed=True, model="m")),
    ],
)
def test_recorded_output_is_read(name: ProfileName, output: str, told: Told) -> None:
    assert PROFILES[name].read(output) == told


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\u0085"])
def test_a_text_with_other_ends_of_lines_is_read_as_it_is(name: ProfileName, end: str) -> None:
    whole = PROFILES[name].read(RECORDED[name])
    told = PROFILES[name].read(RECORDED[name].replace("about", f"about{end}"))
    assert told == replace(whole, said=tuple(text.replace("about", f"about{end}") for text in whole.said))
    assert end in "".join(told.said)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("output", ["", "Ticket 1 is about a server.\n", '{"answer": 42}\n', "[1]\n{broken\n"])
def test_output_of_another_form_is_not_taken_for_the_agents_own(name: ProfileName, output: str) -> None:
    assert PROFILES[name].read(output) == Told(read=False)


def test_an_error_that_only_the_result_tells_is_said_too() -> None:
    output = outputs.lines(
        {"type": "result", "subtype": "error_max_turns", "is_error": True, "result": "Too many turns"}
    )
    assert PROFILES["claude-code"].read(output) == Told(("Too many turns",), None, failed=True)


@pytest.mark.parametrize(("models", "model"), [((), None), (("a",), "a"), (("a", "b"), None)])
def test_claude_code_names_its_model_where_all_tokens_are_of_one(models: tuple[str, ...], model: str | None) -> None:
    used: JSON = {name: {"inputTokens": 1} for name in models}
    told = PROFILES["claude-code"].read(outputs.lines({"type": "result", "modelUsage": used}))
    assert told.model == model


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["codex"], None),
        (["codex", "--model"], None),
        (["codex", "-m", "a", "--model", "b"], "a"),
        (["gemini", "--model", "b", "x"], "b"),
        (["claude", "--model=c"], "c"),
    ],
)
def test_a_command_line_names_the_model_as_the_three_agents_take_it(words: list[str], model: str | None) -> None:
    assert named_model(words) == model


def test_a_turn_after_a_failed_one_counts_and_the_tokens_of_turns_are_summed_up() -> None:
    usage: JSON = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 1}
    turn: dict[str, JSON] = {"type": "turn.completed", "usage": usage}
    told = PROFILES["codex"].read(outputs.lines(turn, {"type": "turn.failed"}, turn))
    assert told == Told((), Tokens(12, 8, 2))


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({}, Tokens(None, None, None)),
        ({"input_tokens": True, "output_tokens": -1, "cached_input_tokens": "7"}, Tokens(None, None, None)),
        ({"input_tokens": 5}, Tokens(5, None, None)),
        ({"input_tokens": 5, "cached_input_tokens": 9}, Tokens(0, 9, None)),
    ],
)
def test_tokens_that_are_not_told_are_unknown_and_never_0(usage: dict[str, JSON], tokens: Tokens) -> None:
    assert PROFILES["codex"].read(outputs.lines({"type": "turn.completed", "usage": usage})).tokens == tokens


@given(broken())
def test_no_value_breaks_a_reader(given: tuple[ProfileName, str]) -> None:
    name, output = given
    told = PROFILES[name].read(output)
    assert all(isinstance(text, str) for text in told.said)
    assert isinstance(told.model, str | None)
    tokens = told.tokens or Tokens()
    assert all(isinstance(part, int | None) for part in (tokens.fresh, tokens.cached, tokens.out))


@given(st.sampled_from(sorted(PROFILES)), st.text())
def test_no_text_breaks_a_reader(name: ProfileName, text: str) -> None:
    PROFILES[name].read(text)


@given(st.sampled_from(sorted(RECORDED)), st.integers(0, 2000))
def test_output_that_is_cut_short_tells_what_came_before(name: ProfileName, cut: int) -> None:
    said = PROFILES[name].read(RECORDED[name][:cut]).said
    assert "".join(PROFILES[name].read(RECORDED[name]).said).startswith("".join(said))
