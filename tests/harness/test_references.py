import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.references import (
    Binding,
    StepReferenceError,
    bind_error,
    bind_result,
    check_references,
    resolve,
)
from proxy.spans import JSON

ANSWER: JSON = {"tier": "gold", "n": 1.0, "hold": True, "none": None, "list": [{"id": 7}, [1, 2]], "map": {"a b": "x"}}
BINDINGS = {"p": Binding("plain", False, ANSWER, True), "q": Binding("no json", True)}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${p.json.tier}", "gold"),
        ("${p.json.hold}", True),
        ("${p.json.none}", None),
        ("${p.json.list[0].id}", 7),
        ("${p.json.list[1][1]}", 2),
        ("${p.json.list}", [{"id": 7}, [1, 2]]),
        ("${p.json}", ANSWER),
        ("${p.text}", "plain"),
        ("${q.is_error}", True),
        ("tier ${p.json.tier}, ${p.json.hold}, ${p.json.none}", "tier gold, true, null"),
        ("${p.json.list[1]}!", "[1, 2]!"),
        ("${p.text}${p.text}", "plainplain"),
        ("$${p.text}", "${p.text}"),
        ("$5 {a}", "$5 {a}"),
        ("", ""),
        ({"a": ["${p.json.tier}", 1, None]}, {"a": ["gold", 1, None]}),
        (True, True),
    ],
)
def test_a_whole_reference_keeps_its_type_and_one_inside_text_is_text(written: JSON, value: JSON) -> None:
    got = resolve(written, BINDINGS)
    assert json.dumps(got) == json.dumps(value)
    assert list(check_references(written, BINDINGS)) == []


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("${p.json.missing}", "there is no 'missing' in a map"),
        ("${p.json.list[5]}", "there is no 5 in a list of 2"),
        ("${p.json.list.id}", "there is no 'id' in a list of 2"),
        ("${p.json.map[0]}", "there is no 0 in a map"),
        ("${p.json.tier.x}", "in the text 'gold'"),
        ("${q.json}", "the answer is not JSON"),
        ("${r.text}", "no step named 'r'"),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error_that_says_where_it_stopped(written: str, says: str) -> None:
    with pytest.raises(StepReferenceError, match=r"^\$\{") as caught:
        resolve(written, BINDINGS)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        "${",
        "${p",
        "${}",
        "${p}",
        "${p.}",
        "${p.xml}",
        "${p.text.x}",
        "${p.is_error[0]}",
        "${p.json.}",
        "${p.json[x]}",
        "${p.json[-1]}",
        "${ p.json }",
        "${p.json.a b}",
        "${p.json..a}",
        "x ${HOME} y",
        "${1p.json}",
        "${p.json${p.json}}",
    ],
)
def test_a_badly_spelled_reference_is_found_before_anything_runs(written: str) -> None:
    (found,) = check_references({"a": [written]}, ["p"])
    assert found[0] == ("a", 0)
    assert "is no reference" in found[1]
    with pytest.raises(StepReferenceError):
        resolve(written, BINDINGS)


def test_a_reference_to_a_name_that_no_earlier_step_has_is_found() -> None:
    assert list(check_references("${r.json}", ["p", "q"])) == [
        ((), "'${r.json}' names no earlier step's `as`; known here: p, q")
    ]
    assert "no earlier step has a name" in next(iter(check_references("${r.json}", [])))[1]


def test_the_json_of_an_answer_is_its_structured_content_else_its_text() -> None:
    block: JSON = [{"type": "text", "text": '{"a": 1}'}]
    assert bind_result({"content": block, "structuredContent": {"b": 2}}).json == {"b": 2}
    assert bind_result({"content": block}).json == {"a": 1}
    assert bind_result({"content": block, "structuredContent": None}).json == {"a": 1}
    plain = bind_result({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]})
    assert (plain.text, plain.has_json, plain.is_error) == ("a\nb", False, False)
    assert bind_result({"content": [], "isError": True}).is_error
    assert bind_result(None).is_error
    assert bind_error("refused") == Binding("refused", True)


@given(st.text("${}p.json[0] a", max_size=20))
def test_any_text_is_read_or_refused_alike_by_the_check_and_the_run(written: str) -> None:
    wrong = list(check_references(written, ["p"]))
    try:
        resolve(written, {"p": Binding("", False, {}, True)})
    except StepReferenceError as error:
        assert wrong or "there is no" in str(error)  # noqa: PT017 - either way is right, as long as both agree
    else:
        assert not wrong


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text("ab{} "), st.lists, max_leaves=5))
def test_what_has_no_reference_stays_as_it_is(value: JSON) -> None:
    assert resolve(value, {}) == value
