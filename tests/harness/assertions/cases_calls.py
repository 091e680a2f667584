"""Fixtures of which calls are made, and how many."""

import json

from proxy.spans import JSON
from tests.harness.assertions.fixtures import both, case, changed, made, seen

# Which calls

A: JSON = {"a": 1}
AB: JSON = {"a": 1, "b": 2}


def calls(mode: str, *expected: JSON, **fields: JSON) -> dict[str, JSON]:
    return {
        "type": "tool_calls",
        "mode": mode,
        "expected": [{"tool": "t", "arguments": one} for one in expected],
        **fields,
    }


SWAPPED = seen(made("t", AB, 1), made("t", A, 3))
case("any order, subset arguments", calls("any_order", A, AB, compare="subset"), SWAPPED, "pass")
case("superset, subset arguments", calls("superset", A, AB, compare="subset"), SWAPPED, "pass")
case("exact, in the other order", calls("exact", A, AB, compare="subset"), SWAPPED, "fail")
case("exact, in that order", calls("exact", AB, A, compare="subset"), SWAPPED, "pass")
both(
    "a boolean is no number",
    calls("superset", {"flag": True}),
    seen(made("t", {"flag": 1})),
    seen(made("t", {"flag": True})),
)
both("a number by value", calls("exact", {"n": 51}), seen(made("t", {"n": "51"})), seen(made("t", {"n": 51.0})))
both("one too many", calls("any_order", A), seen(made("t", A), made("t", A, 3)), seen(made("t", A)))
both("each must be expected", calls("subset", A, AB), seen(made("t", {"c": 1})), seen(made("t", AB)))
both("in order", calls("in_order", A, AB), SWAPPED, seen(made("t", A), made("x", {}, 3), made("t", AB, 5)))
both(
    "calls that overlap have no order",
    calls("in_order", A, AB),
    seen(made("t", AB, 1, until=2), made("t", A, 3, until=4)),
    seen(made("t", AB, 1, until=4), made("t", A, 2, until=3)),
)
both("any of them", calls("any_of", A, AB), seen(made("t", {})), seen(made("t", AB)))
both("nothing must be called", {"type": "tool_calls", "mode": "exact", "expected": []}, seen(made("t")), seen())
both(
    "a call that failed does not count",
    calls("superset", A),
    seen(made("t", A, outcome="tool_error")),
    seen(made("t", A)),
)
both(
    "a retry is none too many, another blocked attempt is",
    calls("exact", A),
    seen(made("t", A), made("t", AB, 3, outcome="denied")),
    seen(made("t", A, outcome="tool_error"), made("t", A, 3)),
)
case("nothing expected given", {"type": "tool_calls", "mode": "exact"}, SWAPPED, "not_run")
MATCHERS: tuple[tuple[JSON, JSON, JSON], ...] = (
    ({"$regex": "C-\\d+"}, "C-12x", "C-12"),
    ({"$one_of": [1, 2]}, 3, 2.0),
    ({"$approx": {"value": 1, "within": 0.1}}, 1.2, 0.95),
    ({"$approx": {"value": 1, "within": 0.1}}, True, 1),
    ({"$schema": {"type": "integer", "minimum": 3}}, 2, 3),
)
for matcher, wrong, right in MATCHERS:
    both(
        f"{json.dumps(matcher)} and {wrong!r}",
        calls("exact", {"v": matcher}),
        seen(made("t", {"v": wrong})),
        seen(made("t", {"v": right})),
    )
both(
    "any value, and nothing more",
    calls("exact", {"v": {"$any": True}}),
    seen(made("t", {"v": 1, "w": 2})),
    seen(made("t", {"v": [1]})),
)


# How many calls

both("at most", {"type": "max_tool_calls", "max": 1}, SWAPPED, seen(made("t")))
both("a blocked one counts", {"type": "max_tool_calls", "max": 0}, seen(made("t", outcome="denied")), seen())
both("the share", {"type": "efficiency", "minimum": 1, "at_least": 0.6}, SWAPPED, seen(made("t")))
both("no call is 0", {"type": "efficiency", "minimum": 1}, seen(), seen(made("t"), made("t", {}, 3)))
READ: JSON = {"rows": [1]}
both(
    "a read again",
    {"type": "no_repeated_reads"},
    seen(made("get", A, 1, result=READ), made("get", {"a": 1.0}, 3, result=READ)),
    seen(made("get", A, 1, result=READ), made("get", A, 3, result={"rows": [2]}), made("get", AB, 5, result=READ)),
)
both(
    "without arguments, with none of them and as their text",
    {"type": "no_repeated_reads"},
    seen(made("get", None, 1, result=READ), made("get", {}, 3, result=READ)),
    seen(made("get", None, 1, result=READ), made("get", {"a": None}, 3, result=READ)),
)
case(
    "as their text",
    {"type": "no_repeated_reads"},
    seen(made("get", A, 1, result=READ), made("get", json.dumps(A), 3, result=READ)),
    "fail",
)
both(
    "a read at once with another is none that repeats",
    {"type": "no_repeated_reads", "tools": ["get"]},
    seen(made("get", A, 1, until=2, result=READ), made("get", A, 3, until=4, result=READ)),
    seen(made("get", A, 1, until=4, result=READ), made("get", A, 2, until=3, result=READ)),
)


both(
    "a read after a write is none that repeats",
    {"type": "no_repeated_reads"},
    seen(
        made("get", A, 1, result=READ), made("put", {}, 3, result={}), made("get", A, 5, result=READ), state=changed()
    ),
    seen(
        made("get", A, 1, result=READ),
        made("put", {}, 3, result={}),
        made("get", A, 5, result=READ),
        state=changed("3"),
    ),
)
both(
    "a write without effect",
    {"type": "no_void_writes", "tools": ["put"]},
    seen(made("put", {}, 1), made("put", {}, 3), state=changed("3")),
    seen(made("get", {}, 1), made("put", {}, 3), state=changed("3")),
)
case("a write that no journal tells of", {"type": "no_void_writes", "tools": ["put"]}, seen(made("put", {})), "not_run")
