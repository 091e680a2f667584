from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.diff import diff
from harness.evidence import Dump, JournalCall, JournalRow, Row, ServerState
from harness.explain import call_key, explain
from harness.trace import Outcome, ToolCall
from proxy.spans import JSON
from tests.harness.made import call, change, dump, ticket

MADE = JournalCall(1, "update_ticket", {})


def problems(
    before: Dump, after: Dump, *journal: JournalRow, calls: tuple[ToolCall, ...] = (call(),), kept: bool = True
) -> list[str]:
    return explain("ticketing", ServerState(before, after, journal if kept else None), calls).problems


def test_a_change_that_the_journal_puts_to_a_recorded_call_is_explained() -> None:
    held = ticket(2, "on_hold")
    assert problems(dump(ticket(2)), dump(held), change(ticket(2), held)) == []


def test_a_change_without_a_journal_row_is_named_with_row_column_and_values() -> None:
    (problem,) = problems(dump(ticket(2)), dump(ticket(2, "closed")))
    assert problem == "ticketing.tickets row 2: status 'open' → 'closed', and no recorded call explains it"


@pytest.mark.parametrize(
    ("before", "after"), [(dump(), dump(ticket(9))), (dump(ticket(9)), dump())], ids=["insert", "delete"]
)
def test_a_row_that_came_or_went_without_a_journal_row_is_unexplained(before: Dump, after: Dump) -> None:
    (problem,) = problems(before, after)
    assert "row 9" in problem


@pytest.mark.parametrize(
    ("recorded", "journal", "known"),
    [
        (("c1", "1"), ("c1", "1"), True),
        (("c1", "1"), ("c1", "1.0"), True),
        (("c1", "1e0"), ("c1", "1"), True),
        (("c1", '"1"'), ("c1", "1"), False),
        (("c1", "1"), ("c1", '"1"'), False),
        (("c1", r'"\u0061"'), ("c1", '"a"'), True),
        (("c1", "1"), ("c2", "1"), False),
        (("c1", "1"), (None, "1"), False),
        ((None, None), (None, None), False),
        (("c1", "null"), ("c1", "null"), False),
        (("c1", "true"), ("c1", "1"), False),
        (("c1", "9007199254740993"), ("c1", "9007199254740992"), False),
        (("c1", "oops"), ("c1", "oops"), False),
    ],
)
def test_a_journal_row_names_a_call_by_connection_and_typed_id(
    recorded: tuple[str | None, str | None], journal: tuple[str | None, str | None], known: bool
) -> None:
    made = call(connection=recorded[0], request_id=recorded[1])
    row = change(ticket(2), ticket(2, "closed"), connection=journal[0], request_id=journal[1])
    assert (problems(dump(ticket(2)), dump(ticket(2, "closed")), row, calls=(made,)) == []) is known


def test_a_call_of_another_server_explains_nothing() -> None:
    row = change(ticket(2), ticket(2, "closed"))
    assert problems(dump(ticket(2)), dump(ticket(2, "closed")), row, calls=(call("mcp/crm/x"),))


def test_a_journal_row_of_an_unknown_call_is_unexplained_without_a_net_change_too() -> None:
    there, back = change(ticket(2), ticket(2, "x"), "77"), change(ticket(2, "x"), ticket(2), "77")
    first, second = problems(dump(ticket(2)), dump(ticket(2)), there, back)
    assert "status 'open' → 'x', by request 77 of connection c1, and no recorded call" in first
    assert "status 'x' → 'open'" in second
    (void,) = problems(dump(ticket(2)), dump(ticket(2)), change(ticket(2), ticket(2), "77"))
    assert "written without a change" in void


def test_a_denied_call_with_an_effect_is_a_problem_that_says_so() -> None:
    row = change(ticket(2), None)
    denied = call("mcp/ticketing/delete_ticket", outcome="denied", seq=8)
    (problem,) = problems(dump(ticket(2)), dump(), row, calls=(denied,))
    assert problem.endswith("by a call that policy denied: mcp/ticketing/delete_ticket (seq 8)")


@pytest.mark.parametrize("outcome", ["ok", "tool_error", "protocol_error", "unanswered", "cancelled"])
def test_any_call_that_reached_the_server_explains_its_effect(outcome: Outcome) -> None:
    row = change(ticket(2), None)
    assert problems(dump(ticket(2)), dump(), row, calls=(call(outcome=outcome),)) == []


def test_a_change_undone_behind_the_proxy_is_unexplained() -> None:
    (problem,) = problems(dump(ticket(2)), dump(ticket(2)), change(ticket(2), ticket(2, "on_hold")))
    assert "status 'on_hold' → 'open', and no recorded call explains it" in problem


def test_a_change_behind_the_proxy_before_a_recorded_one_is_unexplained() -> None:
    row = change(ticket(2, "open", "forged"), ticket(2, "on_hold", "forged"))
    (problem,) = problems(dump(ticket(2)), dump(ticket(2, "on_hold", "forged")), row)
    assert "description 'down' → 'forged', before a change by mcp/ticketing/update_ticket" in problem


def test_a_row_put_back_behind_the_proxy_between_two_calls_is_unexplained() -> None:
    first, second = change(ticket(2), ticket(2, "x")), change(ticket(2), ticket(2, "y"))
    (problem,) = problems(dump(ticket(2)), dump(ticket(2, "y")), first, second)
    assert "status 'x' → 'open', before a change" in problem


def test_a_row_changed_twice_and_one_that_came_and_went_are_explained() -> None:
    twice = [change(ticket(2), ticket(2, "x")), change(ticket(2, "x"), ticket(2, "y"))]
    brief = [change(None, ticket(3)), change(ticket(3), None)]
    assert problems(dump(ticket(2)), dump(ticket(2, "y")), *twice, *brief) == []


def test_a_row_that_was_there_although_the_journal_inserts_it_is_unexplained() -> None:
    assert problems(dump(ticket(2)), dump(ticket(2, "x")), change(None, ticket(2, "x")))
    assert problems(dump(), dump(), change(ticket(2), None))


@pytest.mark.parametrize("number", [2, 5], ids=["old rowid", "new rowid"])
def test_a_row_that_moved_to_another_rowid_is_explained_by_either_number(number: int) -> None:
    row = JournalRow("c1", "1", "tickets", number, "UPDATE", ticket(2), ticket(5), MADE)
    assert problems(dump(ticket(2)), dump(ticket(5)), row) == []
    assert problems(dump(ticket(2), ticket(5, "x")), dump(ticket(5)), row)


def test_reals_that_sqlite_rounds_in_json_are_the_same_value() -> None:
    schema, exact, rounded = ("CREATE TABLE t(a)",), 0.1 + 0.2, 0.3
    row = JournalRow("c1", "1", "t", 1, "update", {"a": 1}, {"a": rounded}, MADE)
    state = ServerState(Dump(schema, {"t": {1: {"a": 1}}}), Dump(schema, {"t": {1: {"a": exact}}}), (row,))
    assert explain("ticketing", state, [call()]).problems == []


def test_a_changed_schema_is_explained_by_no_journal_and_put_to_open_calls_without_one() -> None:
    after = Dump((*dump().schema, "CREATE TABLE x(a)"), {"tickets": {}, "x": {}})
    (problem,) = problems(dump(), after)
    assert "CREATE TABLE x(a)" in problem
    assert problems(dump(), after, kept=False) == []
    assert problems(dump(), after, kept=False, calls=()) != []


@pytest.mark.parametrize(
    ("outcome", "words"), [("denied", "only blocked calls are recorded"), (None, "no call was open")]
)
def test_without_a_journal_and_without_an_open_call_a_change_is_unexplained(
    outcome: Outcome | None, words: str
) -> None:
    calls = () if outcome is None else (call(outcome=outcome),)
    (problem,) = problems(dump(ticket(2)), dump(ticket(2, "x")), calls=calls, kept=False)
    assert words in problem
    assert problems(dump(ticket(2)), dump(ticket(2)), calls=calls, kept=False) == []


def test_without_a_journal_a_change_is_put_to_the_open_calls() -> None:
    state = ServerState(dump(ticket(2)), dump(ticket(2, "x")), None)
    told = explain("ticketing", state, [call(seq=1), call(seq=2), call("mcp/crm/x"), call(outcome="denied", seq=3)])
    (what,) = diff(state.before or dump(), state.after)
    assert told.problems == []
    assert told.author(what) == "by one of mcp/ticketing/update_ticket (seq 1); mcp/ticketing/update_ticket (seq 2)"


def test_the_author_of_a_cell_is_the_call_that_last_wrote_it() -> None:
    journal = (
        change(ticket(2), ticket(2, "x"), "1"),
        change(ticket(2, "x"), ticket(2, "x", "new"), "2"),
        change(None, ticket(3), "3"),
        change(ticket(4), None, "4"),
    )
    state = ServerState(dump(ticket(2), ticket(4)), dump(ticket(2, "x", "new"), ticket(3)), journal)
    told = explain("ticketing", state, [call(seq=n, request_id=str(n)) for n in (1, 2, 3, 4)])
    updated, inserted, deleted = diff(state.before or dump(), state.after)
    assert told.problems == []
    assert "(seq 1)" in told.author(updated, "status")
    assert "(seq 2)" in told.author(updated, "description")
    assert "(seq 3)" in told.author(inserted)
    assert "(seq 4)" in told.author(deleted)


def test_no_call_is_blamed_for_a_cell_that_somebody_else_wrote_after_it() -> None:
    state = ServerState(dump(ticket(2)), dump(ticket(2, "z")), (change(ticket(2), ticket(2, "x")),))
    (what,) = diff(state.before or dump(), state.after)
    assert explain("ticketing", state, [call()]).author(what, "status") == "by no recorded call"


def test_an_id_that_was_used_twice_names_both_calls() -> None:
    state = ServerState(dump(ticket(2)), dump(ticket(2, "x")), (change(ticket(2), ticket(2, "x")),))
    told = explain("ticketing", state, [call(seq=1), call(seq=2)])
    (what,) = diff(state.before or dump(), state.after)
    assert told.problems == []
    assert told.author(what, "status").startswith("by one of ")


def test_a_row_is_explained_only_by_a_call_of_its_tool_and_arguments() -> None:
    before, after = dump(ticket(2)), dump(ticket(2, "x"))
    wrote = change(ticket(2), ticket(2, "x"), arguments={"ticket_id": 2, "tags": [1, {"a": 2.0}]})
    like: list[JSON] = [{"ticket_id": 2.0, "tags": [1.0, {"a": 2}]}, {"tags": [1, {"a": 2}], "ticket_id": 2}]
    for arguments in like:
        assert problems(before, after, wrote, calls=(call(arguments=arguments),)) == []
    unlike: list[JSON] = [{"ticket_id": 2}, {"ticket_id": True, "tags": [1, {"a": 2}]}, {"ticket_id": 2, "tags": [1]}]
    for arguments in unlike:
        (problem,) = problems(before, after, wrote, calls=(call(arguments=arguments),))
        assert "by an execution of update_ticket" in problem
    other = call("mcp/ticketing/get_ticket", {"ticket_id": 2, "tags": [1, {"a": 2}]})
    (problem,) = problems(before, after, wrote, calls=(other,))
    assert "recorded of that id is mcp/ticketing/get_ticket" in problem


def test_arguments_that_were_cut_in_the_record_explain_nothing() -> None:
    cut = replace(call(), arguments_truncated=True)
    assert problems(dump(ticket(2)), dump(ticket(2, "x")), change(ticket(2), ticket(2, "x")), calls=(cut,))


def test_a_row_whose_execution_is_not_in_the_journal_is_unexplained() -> None:
    row = replace(change(ticket(2), ticket(2, "x")), call=None)
    assert problems(dump(ticket(2)), dump(ticket(2, "x")), row)


def test_more_executions_than_recorded_calls_are_unexplained() -> None:
    steps = [change(ticket(2, str(n)), ticket(2, str(n + 1)), number=n) for n in range(3)]
    (problem,) = problems(dump(ticket(2, "0")), dump(ticket(2, "3")), *steps, calls=(call(seq=1), call(seq=2)))
    assert "'2' → '3'" in problem


def test_ids_join_by_type_and_value() -> None:
    assert call_key("c", "1") == call_key("c", "1.0") != call_key("c", '"1"')
    assert call_key("c", None) is None


Write = tuple[int, Literal["open", "closed", "on_hold"] | None]
writes: st.SearchStrategy[list[Write]] = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["open", "closed", "on_hold", None])), max_size=8
)


def replay(rows: dict[int, Row], steps: list[Write]) -> list[JournalRow]:
    journal = []
    for number, status in steps:
        before, after = rows.get(number), None if status is None else ticket(number, status)
        if before is None and after is None:
            continue
        journal.append(change(before, after))
        if after is None:
            del rows[number]
        else:
            rows[number] = after
    return journal


@settings(max_examples=100, deadline=None)
@given(writes)
def test_every_history_that_the_journal_tells_is_explained(steps: list[Write]) -> None:
    rows: dict[int, Row] = {1: ticket(1)}
    journal = replay(rows, steps)
    assert problems(dump(ticket(1)), dump(*rows.values()), *journal) == []


@settings(max_examples=100, deadline=None)
@given(writes, st.integers(0, 8), st.integers(1, 3))
def test_one_write_behind_the_proxy_is_seen_anywhere_in_a_history(steps: list[Write], at: int, number: int) -> None:
    rows: dict[int, Row] = {1: ticket(1)}
    journal = replay(rows, steps[:at])
    rows[number] = ticket(number, "forged")
    journal += replay(rows, steps[at:])
    assert problems(dump(ticket(1)), dump(*rows.values()), *journal)
