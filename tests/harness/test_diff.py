from hypothesis import given, settings
from hypothesis import strategies as st

from harness.diff import Change, diff, schema_changes
from harness.evidence import Dump, Row
from proxy.spans import JSON
from tests.harness.made import SCHEMA, dump, ticket

cells: st.SearchStrategy[JSON] = st.one_of(
    st.none(), st.integers(-3, 3), st.floats(-3, 3), st.sampled_from(["", "1", "a"]), st.just({"$blob": "AA=="})
)
rows: st.SearchStrategy[Row] = st.fixed_dictionaries({"a": cells, "b": cells})
tables: st.SearchStrategy[dict[int, Row]] = st.dictionaries(st.integers(1, 6), rows, max_size=5)


def apply(table: dict[int, Row], changes: tuple[Change, ...]) -> dict[int, Row]:
    result = dict(table)
    for change in changes:
        if change.after is None:
            del result[change.rowid]
        else:
            result[change.rowid] = {**result.get(change.rowid, {}), **{n: change.after[n] for n in change.columns}}
    return result


@settings(max_examples=150)
@given(tables, tables)
def test_the_changes_of_the_named_columns_lead_from_before_to_after(
    before: dict[int, Row], after: dict[int, Row]
) -> None:
    schema = ("CREATE TABLE t(a, b)",)
    assert apply(before, diff(Dump(schema, {"t": before}), Dump(schema, {"t": after}))) == after


def test_equal_dumps_differ_in_nothing_and_one_is_one_point_zero() -> None:
    assert diff(dump(ticket(1)), dump(ticket(1))) == ()
    assert diff(Dump((), {"t": {1: {"a": 1}}}), Dump((), {"t": {1: {"a": 1.0}}})) == ()
    assert len(diff(Dump((), {"t": {1: {"a": 1}}}), Dump((), {"t": {1: {"a": "1"}}}))) == 1
    assert len(diff(Dump((), {"t": {1: {"a": 1}}}), Dump((), {"t": {1: {"a": True}}}))) == 1


def test_a_change_says_row_id_column_and_both_values() -> None:
    (change,) = diff(dump(ticket(2)), dump(ticket(2, "on_hold")))
    assert f"{change.place}: {change.words()}" == "tickets row 2: status 'open' → 'on_hold'"
    (gone,) = diff(dump(ticket(2)), dump())
    assert gone.words().startswith("deleted, it had id 2, ")
    (new,) = diff(dump(), dump(ticket(2)))
    assert (new.op, new.words().startswith("inserted with id 2, ")) == ("insert", True)


def test_rows_of_a_table_without_rowid_are_told_apart_by_their_key() -> None:
    schema = ("CREATE TABLE w(k text primary key, v) without rowid",)
    before = Dump(schema, {"w": {1: {"k": "a", "v": 1}, 2: {"k": "b", "v": 2}}})
    after = Dump(schema, {"w": {1: {"k": "b", "v": 2}}})
    (change,) = diff(before, after)
    assert (change.op, change.before) == ("delete", {"k": "a", "v": 1})


def test_tables_and_columns_that_came_or_went_are_changes() -> None:
    before, after = dump(ticket(1)), Dump(("CREATE TABLE tickets(id)",), {"tickets": {1: {"id": 1}}})
    assert schema_changes(before, after) == tuple(sorted((SCHEMA, "CREATE TABLE tickets(id)")))
    (change,) = diff(before, after)
    assert "status 'open' → absent" in change.words()
    assert [row.op for row in diff(before, Dump((), {}))] == ["delete"]


def test_long_values_are_cut_and_blobs_are_told_by_their_size() -> None:
    before, after = Dump((), {"t": {1: {"a": "x" * 500}}}), Dump((), {"t": {1: {"a": {"$blob": "AAAA"}}}})
    (change,) = diff(before, after)
    assert change.words().endswith("… → a blob of 3 bytes")
    assert len(change.words()) < 200
