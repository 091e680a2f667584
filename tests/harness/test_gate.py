import pytest

from harness.gate import EVERYTHING, Gate
from harness.repeats import Task
from harness.verdict import Result

HALF = [Task(4, 2)]


@pytest.mark.parametrize(
    ("gate", "tasks", "results", "holds"),
    [
        (EVERYTHING, [Task(1, 1)], ["pass"], True),
        (EVERYTHING, [Task(1, 1), Task(1, 0)], ["pass", "fail"], False),
        (EVERYTHING, [Task(1, 0)], ["not_run"], False),
        (Gate(0.5), HALF, ["fail"], True),
        (Gate(0.51), HALF, ["fail"], False),
        (Gate(0.5), HALF, ["error"], False),
        (Gate(0.5, frozenset({"not_run"})), HALF, ["not_run"], False),
        (Gate(None, frozenset({"not_run"})), HALF, ["fail"], True),
        (Gate(None, frozenset({"not_run"})), HALF, ["not_run"], False),
        (Gate(0.0), [Task(0, 0, 3)], ["pass"], False),
    ],
)
def test_a_gate_holds_by_its_share_and_its_named_results(
    gate: Gate, tasks: list[Task], results: list[Result], holds: bool
) -> None:
    assert (gate.broken(tasks, results) is None) == holds


@pytest.mark.parametrize(
    ("gate", "tasks", "results", "line"),
    [
        (EVERYTHING, [Task(1, 0)], ["fail"], None),
        (
            Gate(0.6),
            [Task(6, 4)],
            ["fail"],
            "gate: 4/6 = 66.7 % of valid trials passed, at least 60 % wanted; "
            "1 of 1 scenarios: fail, which this gate lets be: holds",
        ),
        (
            Gate(0.7),
            [Task(6, 4)],
            ["fail"],
            "gate: does not hold: 4/6 = 66.7 % of valid trials passed, at least 70 % wanted",
        ),
        (
            Gate(None, frozenset({"not_run"})),
            [Task(1, 0)] * 7,
            ["fail"] * 7,
            "gate: no scenario may be not_run; 7 of 7 scenarios: fail, which this gate lets be: holds",
        ),
    ],
)
def test_a_gate_that_was_asked_for_says_whether_it_holds_and_which_failures_it_lets_be(
    gate: Gate, tasks: list[Task], results: list[Result], line: str | None
) -> None:
    assert gate.told(tasks, results) == line
