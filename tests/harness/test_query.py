import pytest

from harness.evidence import Dump
from harness.query import QueryError, run_query


def test_a_dump_is_queried_by_rowid_and_with_its_views() -> None:
    schema = ("CREATE TABLE t(a, b text)", "CREATE VIEW v AS select a from t", "CREATE UNIQUE INDEX i ON t(a)")
    answer = run_query(Dump(schema, {"t": {7: {"a": 1, "b": "x"}}}), "select t.rowid, v.a, b as c from t, v")
    assert (answer.columns, answer.rows) == (("rowid", "a", "c"), ((7, 1, "x"),))


def test_triggers_and_checks_of_the_server_do_not_run_again() -> None:
    schema = (
        "CREATE TABLE t(a check (a > 100), b as (a * 2))",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN delete from t; END",
    )
    assert run_query(Dump(schema, {"t": {1: {"a": 3, "b": 6}}}), "select a, b from t").rows == ((3, 6),)


def test_bytes_that_are_not_utf8_come_back_as_they_were() -> None:
    dump = Dump(("CREATE TABLE t(a text)",), {"t": {1: {"a": "x\udcff"}}})
    assert run_query(dump, "select a, hex(a), typeof(a) from t").rows == (("x\udcff", "78FF", "text"),)


def test_a_table_that_hides_the_rowid_or_has_none_is_queried_all_the_same() -> None:
    schema = ("CREATE TABLE h(rowid, oid, _rowid_)", "CREATE TABLE w(k text primary key) without rowid")
    dump = Dump(schema, {"h": {1: {"rowid": "a", "oid": "b", "_rowid_": "c"}}, "w": {1: {"k": "z"}}})
    assert run_query(dump, "select h.rowid, k from h, w").rows == (("a", "z"),)


def test_json_functions_work_and_a_table_that_only_the_server_can_make_is_an_error() -> None:
    dump = Dump(("CREATE VIRTUAL TABLE f USING no_such_module(a)",), {})
    assert run_query(dump, "select json_extract('{\"a\": 2}', '$.a')").rows == ((2,),)
    with pytest.raises(QueryError, match="no such table: f"):
        run_query(dump, "select * from f")
