from itertools import cycle

from harness.canaries import LENGTH, canary_names, draw, plant
from proxy.spans import JSON

ROWS: JSON = {"t": [{"a": "x {canary:one} y", "b": 1}, {"a": "{canary:two}{canary:one}"}]}


def test_each_name_has_one_canary_wherever_it_stands() -> None:
    letters = cycle("abcdefg")
    canaries = draw(canary_names(ROWS), lambda _: next(letters))
    assert list(canaries) == ["one", "two"]
    assert {len(text) for text in canaries.values()} == {LENGTH}
    one, two = canaries.values()
    assert plant(ROWS, canaries) == {"t": [{"a": f"x {one} y", "b": 1}, {"a": f"{two}{one}"}]}


def test_rows_without_a_canary_stay_what_they_are() -> None:
    rows: JSON = {"t": [{"a": "{canary:}", "b": None}]}
    assert plant(rows, draw(canary_names(rows), lambda _: "x")) == rows
