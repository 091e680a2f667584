import json
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.jsontext import DEEPEST, JsonReader, depth
from proxy.spans import JSON

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
)
values = cast(
    "st.SearchStrategy[JSON]",
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
)


@settings(max_examples=150)
@given(values)
def test_what_json_can_say_is_read_without_loss(value: JSON) -> None:
    reader = JsonReader()
    for ascii_only in (True, False):
        assert reader.read(json.dumps(value, ensure_ascii=ascii_only)) == value
        assert reader.readable
        assert not reader.lost


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1,"a":2}', {"a": 2}),
        ('[{"x":{"a":1,"a":1}}]', [{"x": {"a": 1}}]),
        ("1E2", 100.0),
        ("1.50", 1.5),
        ("0.1000000000000000055511151231257827", 0.1),
        ("-0", 0),
        ("1e999", "1e999"),
        ("NaN", "NaN"),
        ("[-Infinity]", ["-Infinity"]),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_what_the_value_does_not_tell_is_said(text: str, value: JSON) -> None:
    reader = JsonReader()
    assert reader.read(text) == value
    assert reader.lost
    assert reader.readable
    json.loads(json.dumps(value, allow_nan=False))


@pytest.mark.parametrize("text", ["9007199254740993", "1" * 30, "-0.0", "1.5", "1e+16", '"\\ud800"', ' { "a" : [] } '])
def test_exact_integers_and_shortest_doubles_lose_nothing(text: str) -> None:
    reader = JsonReader()
    reader.read(text)
    assert not reader.lost


@pytest.mark.parametrize("text", ["", "{", "nope", "[1,]", '{"a":1} x', "[" * 100_000, "[" * 900 + "]" * 900])
def test_what_cannot_be_read_is_said_and_never_raised(text: str) -> None:
    reader = JsonReader()
    assert reader.read(text) is None
    assert reader.lost
    assert not reader.readable


def test_a_reader_forgets_the_text_before() -> None:
    reader = JsonReader()
    reader.read("nope")
    reader.read("{}")
    assert reader.readable
    assert not reader.lost


def test_nesting_counts_containers_and_not_brackets_in_strings() -> None:
    assert depth([[1], {"a": []}]) == 3
    reader = JsonReader()
    reader.read(json.dumps("[" * 10 * DEEPEST))
    assert reader.readable
    deep = "[" * DEEPEST + "]" * DEEPEST
    reader.read(deep)
    assert reader.readable
    reader.read(f"[{deep}]")
    assert not reader.readable
