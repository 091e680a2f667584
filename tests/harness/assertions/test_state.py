import pytest

from harness.assertions.assertion import AssertionSpecError, parse_assertion
from harness.evidence import Dump, Evidence, Row, ServerState
from harness.trace import Coverage
from harness.verdict import Finding
from proxy.spans import JSON
from tests.harness.made import SCHEMA, call, change, dump, ticket, wire

QUERY = "select status, id from tickets order by id"


def after(*rows: Row) -> Evidence:
    return wire(state={"ticketing": ServerState(dump(), dump(*rows), ())})


def state(evidence: Evidence, query: str = QUERY, **fields: JSON) -> Finding:
    return parse_assertion({"type": "state", "server": "ticketing", "query": query, **fields}).judge(evidence)


def unchanged(evidence: Evidence, *exempt: JSON, **fields: JSON) -> Finding:
    return parse_assertion({"type": "state_unchanged", "except": list(exempt), **fields}).judge(evidence)


def test_rows_as_wanted_pass_and_rest_on_state() -> None:
    finding = state(after(ticket(1), ticket(2, "on_hold")), equals=[["open", 1], ["on_hold", 2.0]])
    assert (finding.result, finding.rests) == ("pass", "state")


def test_the_first_row_and_column_that_differ_are_named_with_both_values() -> None:
    finding = state(after(ticket(1), ticket(2, "escalated")), equals=[["open", 1], ["on_hold", 2]])
    assert finding.result == "fail"
    assert "ticketing: row 2, column status is 'escalated', wanted 'on_hold'" in finding.reason


@pytest.mark.parametrize(
    ("equals", "words"),
    [
        ([["open", 1]], "2 rows where 1 wanted; the first that is too much, row 2, has status 'closed', id 2"),
        ([["open", 1], ["closed", 2], ["x", 3]], "2 rows where 3 wanted; the first that is missing, row 3, is 'x', 3"),
        ([], "2 rows where 0 wanted"),
        ([["x", 1]], "row 1, column status is 'open', wanted 'x'; 2 rows where 1 wanted"),
    ],
)
def test_a_difference_in_the_number_of_rows_is_told(equals: JSON, words: str) -> None:
    finding = state(after(ticket(1), ticket(2, "closed")), equals=equals)
    assert finding.result == "fail"
    assert words in finding.reason


@pytest.mark.parametrize(
    ("sql", "cell", "result"),
    [
        ("select 1", 1.0, "pass"),
        ("select 1.0", 1, "pass"),
        ("select '1'", 1, "fail"),
        ("select 1", "1", "fail"),
        ("select null", None, "pass"),
        ("select ''", None, "fail"),
        ("select null", "", "fail"),
        ("select x'00ff'", {"$blob": "AP8="}, "pass"),
        ("select x'00ff'", "AP8=", "fail"),
        ("select 9007199254740993", 9007199254740992.0, "fail"),
    ],
)
def test_cells_are_equal_by_type_and_numbers_by_value(sql: str, cell: JSON, result: str) -> None:
    assert state(after(), sql, equals=[[cell]]).result == result


@pytest.mark.parametrize(
    ("pattern", "result"),
    [
        (r"down ?\[CREDIT_HOLD\]", "pass"),
        (r"down", "fail"),
        (r"(?s).*HOLD.*", "pass"),
        (None, "fail"),
    ],
)
def test_matches_is_a_whole_match_of_each_cell(pattern: JSON, result: str) -> None:
    evidence = after(ticket(2, description="down [CREDIT_HOLD]"))
    assert state(evidence, "select description from tickets", matches=[[pattern]]).result == result


def test_matches_reads_a_number_as_json_and_null_only_as_null() -> None:
    assert state(after(), "select 51, 1.5, null", matches=[["5.", r"1\.5", None]]).result == "pass"
    finding = state(after(), "select null as n", matches=[[".*"]])
    assert (finding.result, "column n is null, wanted to match '.*'" in finding.reason) == ("fail", True)


@pytest.mark.parametrize(
    "sql",
    [
        "delete from tickets",
        "insert into tickets(id) values (9)",
        "attach 'x.db' as x",
        "pragma query_only = off",
        "create temp table t(a)",
        "select 1; select 2",
        "select nothing from tickets",
        "selec",
        "",
        "select random()",
        "with recursive c(n) as (select 1 union all select n + 1 from c) select max(n) from c",
        "with recursive c(n) as (select 1 union all select n + 1 from c limit 20000) select n from c",
        "select zeroblob(900000000)",
    ],
)
def test_a_query_that_cannot_be_read_safely_is_an_error_finding(sql: str) -> None:
    finding = state(after(ticket(1)), sql, equals=[[1]])
    assert finding.result == "error"
    assert finding.reason.startswith("ticketing: ")


def test_rows_of_another_width_than_the_query_are_an_error() -> None:
    finding = state(after(ticket(1)), equals=[["open"]])
    assert (finding.result, "status, id" in finding.reason) == ("error", True)


def test_without_state_nothing_is_judged() -> None:
    assert "state" in state(wire(coverage=Coverage("wire", "wire", "wire", "wire")), equals=[]).reason
    assert state(wire(), equals=[]).result == "not_run"
    assert unchanged(wire()).result == "not_run"
    assert unchanged(after(), servers=["crm"]).result == "not_run"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, ()),
        ({"equals": [], "matches": []}, ()),
        ({"equals": [[True]]}, ("equals",)),
        ({"equals": [[[1]]]}, ("equals",)),
        ({"equals": [1]}, ("equals", 0)),
        ({"matches": [["("]]}, ("matches",)),
        ({"matches": [[1]]}, ("matches", 0, 0)),
        ({"equals": [], "table": "x"}, ("table",)),
    ],
)
def test_a_state_assertion_that_cannot_be_read_names_its_field(fields: dict[str, JSON], path: tuple[str, ...]) -> None:
    with pytest.raises(AssertionSpecError) as caught:
        parse_assertion({"type": "state", "server": "ticketing", "query": QUERY, **fields})
    assert caught.value.problems[0][0] == path


def touched(before: Row | None, now: Row | None, request_id: str = "1") -> Evidence:
    untouched = ticket(1)
    rows = [[untouched, *([] if row is None else [row])] for row in (before, now)]
    told = ServerState(dump(*rows[0]), dump(*rows[1]), (change(before, now, request_id, arguments={"ticket_id": 2}),))
    return wire(call(arguments={"ticket_id": 2}, seq=14), state={"ticketing": told})


HELD: JSON = {"server": "ticketing", "table": "tickets", "where": {"customer_id": "CUST-004"}, "columns": ["status"]}
ROW: JSON = {"server": "ticketing", "table": "tickets", "where": {"id": 2}}


def test_nothing_changed_passes_and_rests_on_state() -> None:
    finding = unchanged(touched(ticket(2), ticket(2)))
    assert (finding.result, finding.rests) == ("pass", "state")


def test_a_change_fails_with_its_row_column_values_and_call() -> None:
    finding = unchanged(touched(ticket(2), ticket(2, description="gone")))
    assert finding.result == "fail"
    assert finding.reason == (
        "ticketing.tickets row 2: description 'down' → 'gone', "
        'by mcp/ticketing/update_ticket {"ticket_id": 2} (seq 14)'
    )


@pytest.mark.parametrize(
    ("before", "now", "exempt", "result"),
    [
        (ticket(2), ticket(2, "on_hold"), [HELD], "pass"),
        (ticket(2), ticket(2, "on_hold", "gone"), [HELD], "fail"),
        (ticket(2), ticket(2, "on_hold", "gone"), [HELD, ROW], "pass"),
        (ticket(2, customer="CUST-003"), ticket(2, "on_hold", customer="CUST-004"), [HELD], "fail"),
        (None, ticket(2), [HELD], "fail"),
        (ticket(2), None, [HELD], "fail"),
        (None, ticket(2), [ROW], "pass"),
        (ticket(2), None, [ROW], "pass"),
        (ticket(2), ticket(2, "on_hold"), [{"server": "ticketing", "table": "tickets", "where": {"id": "2"}}], "fail"),
        (ticket(2), ticket(2, "on_hold"), [{"server": "ticketing", "table": "tickets", "where": {"id": 2.0}}], "pass"),
        (ticket(2), ticket(2, "on_hold"), [{"server": "ticketing", "table": "tickets"}], "pass"),
    ],
)
def test_except_is_matched_on_the_row_before_and_frees_only_its_columns(
    before: Row | None, now: Row | None, exempt: list[JSON], result: str
) -> None:
    assert unchanged(touched(before, now), *exempt).result == result


@pytest.mark.parametrize(
    "exempt",
    [
        {"server": "crm", "table": "tickets"},
        {"server": "ticketing", "table": "ticket"},
        {"server": "ticketing", "table": "tickets", "where": {"customer": "x"}},
        {"server": "ticketing", "table": "tickets", "columns": ["stats"]},
    ],
)
def test_an_exemption_that_names_nothing_there_is_an_error(exempt: JSON) -> None:
    assert unchanged(touched(ticket(2), ticket(2)), exempt).result == "error"


def test_an_exemption_that_cannot_be_read_names_its_field() -> None:
    with pytest.raises(AssertionSpecError, match=r"except\[0\]\.wher: unknown field"):
        parse_assertion({"type": "state_unchanged", "except": [{"server": "x", "table": "y", "wher": {}}]})
    with pytest.raises(AssertionSpecError, match="SQLite has no booleans"):
        parse_assertion({"type": "state_unchanged", "except": [{"server": "x", "table": "y", "where": {"a": True}}]})


def test_a_changed_schema_is_a_change() -> None:
    told = ServerState(dump(), Dump((SCHEMA, "CREATE TABLE extra(a)"), {"tickets": {}, "extra": {}}), ())
    finding = unchanged(wire(state={"ticketing": told}))
    assert (finding.result, "CREATE TABLE extra" in finding.reason) == ("fail", True)


def test_a_change_on_a_server_without_a_journal_is_put_to_one_of_the_open_calls() -> None:
    told = ServerState(dump(ticket(2)), dump(ticket(2, "closed")), None)
    finding = unchanged(wire(call(seq=1), call(seq=2), state={"ticketing": told}))
    assert "'open' → 'closed', by one of " in finding.reason
    assert "(seq 1); mcp/ticketing/update_ticket (seq 2)" in finding.reason
