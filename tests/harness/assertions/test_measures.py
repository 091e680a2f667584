"""The numbers that assertions take (issue 5, "Shown by" 4 and 5); what cannot be observed is null."""

import pytest

from harness.assertions.assertion import parse_assertion
from harness.evidence import Evidence
from proxy.spans import JSON
from tests.harness.assertions.fixtures import made, seen
from tests.harness.made import REPORTED, recorded

A: JSON = {"a": 1}


def measures(spec: dict[str, JSON], evidence: Evidence) -> dict[str, int | float | None] | None:
    return parse_assertion(spec).judge(evidence).measures


def matched(expected: list[JSON], *called: tuple[str, JSON]) -> dict[str, int | float | None] | None:
    calls = [made(tool, arguments, 2 * place + 1) for place, (tool, arguments) in enumerate(called)]
    return measures({"type": "tool_calls", "mode": "any_order", "expected": expected}, seen(*calls))


ONE: JSON = {"tool": "t", "arguments": A}


@pytest.mark.parametrize(
    ("expected", "called", "precision", "recall", "f1"),
    [
        ([ONE, ONE], [("t", A), ("t", A)], 1.0, 1.0, 1.0),
        ([ONE, ONE], [("t", A)], 1.0, 0.5, 2 / 3),
        ([ONE], [("t", A), ("u", A)], 0.5, 1.0, 2 / 3),
        ([ONE], [("u", A)], 0.0, 0.0, 0.0),
        ([], [("t", A)], 0.0, None, 0.0),
        ([ONE], [], None, 0.0, 0.0),
        ([], [], None, None, None),
    ],
)
def test_precision_recall_and_f1_are_of_the_best_assignment_and_0_of_0_is_null(
    expected: list[JSON],
    called: list[tuple[str, JSON]],
    precision: float | None,
    recall: float | None,
    f1: float | None,
) -> None:
    found = matched(expected, *called)
    assert found == {"precision": precision, "recall": recall, "f1": pytest.approx(f1) if f1 is not None else None}


def test_efficiency_is_the_minimum_over_the_calls_and_unobserved_null() -> None:
    spec: dict[str, JSON] = {"type": "efficiency", "minimum": 2}
    for number, share in ((0, 0.0), (1, 1.0), (2, 1.0), (4, 0.5)):
        found = measures(spec, seen(*(made("t", A, 2 * place + 1) for place in range(number))))
        assert found is not None
        assert found["efficiency"] == share
    silent = recorded(coverage=type(REPORTED)())
    assert parse_assertion(spec).judge(silent).result == "not_run"
    assert (measures(spec, silent) or {}).get("efficiency") is None
