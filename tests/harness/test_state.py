import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evidence import Dump, JournalCall, JournalRow, Row, ServerState
from harness.state import (
    StateError,
    load_dump,
    load_journal,
    load_state,
    read_dump,
    read_journal,
    write_dump,
    write_journal,
    write_state,
)
from proxy.spans import JSON

cells: st.SearchStrategy[JSON] = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.binary(max_size=4).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.sampled_from([{"$blob": "AP8="}, {"$blob": ""}]),
)
rows: st.SearchStrategy[Row] = st.fixed_dictionaries({"a": cells, "b": cells})
tables: st.SearchStrategy[dict[int, Row]] = st.dictionaries(st.integers(1, 50), rows, max_size=4)


TABLES = """
create table calls(connection, request_id, tool, arguments);
create table changes(connection, request_id, table_name, row_id, op, before, after, call);
"""


def make(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)


@settings(max_examples=60, deadline=None)
@given(tables, tables)
def test_a_dump_is_the_same_after_it_was_written_and_read(one: dict[int, Row], other: dict[int, Row]) -> None:
    with_scratch(Dump(("CREATE TABLE t(a, b)", 'CREATE TABLE "ü"(a, b)'), {"t": one, "ü": other}))


def with_scratch(dump: Dump) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path, again = Path(folder, "one"), Path(folder, "two")
        write_dump(path, dump)
        read = load_dump(path)
        assert read == dump
        write_dump(again, read)
        assert path.read_bytes() == again.read_bytes()


def test_a_dump_reads_every_storage_class_by_rowid_in_place(tmp_path: Path) -> None:
    path = tmp_path / "odd name?#.db"
    make(path, "create table t(a); insert into t(rowid, a) values (5, 1), (9, 1.5), (2, 'x'), (3, null), (4, x'00ff')")
    before = path.read_bytes()
    dump = read_dump(path)
    assert dump.schema == ("CREATE TABLE t(a)",)
    assert [(rowid, row["a"]) for rowid, row in dump.tables["t"].items()] == [
        (2, "x"),
        (3, None),
        (4, {"$blob": "AP8="}),
        (5, 1),
        (9, 1.5),
    ]
    assert path.read_bytes() == before


def test_what_only_the_write_ahead_log_holds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wal.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table t(a)")
        database.execute("insert into t values (1)")
        database.commit()
        assert b"CREATE TABLE t" not in path.read_bytes()
        assert read_dump(path).tables == {"t": {1: {"a": 1}}}


def test_the_log_that_a_killed_server_left_is_read_too(tmp_path: Path) -> None:
    path, killed = tmp_path / "wal.db", tmp_path / "killed"
    killed.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.executescript("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table t(a)")
        for name in ("wal.db", "wal.db-wal"):
            (killed / name).write_bytes((tmp_path / name).read_bytes())
    assert read_dump(killed / "wal.db").tables == {"t": {}}


def test_a_table_without_rowid_is_numbered_by_its_key_and_tables_of_sqlite_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(
        path,
        "create table w(k text primary key, v) without rowid; insert into w values ('b', 1), ('a', 2);"
        "create table s(id integer primary key autoincrement); insert into s default values",
    )
    assert read_dump(path).tables == {"w": {1: {"k": "a", "v": 2}, 2: {"k": "b", "v": 1}}, "s": {1: {"id": 1}}}


def test_a_journal_is_read_in_the_order_of_its_rows_with_ids_as_json_text(tmp_path: Path) -> None:
    path = tmp_path / "x.db.journal.db"
    make(
        path,
        TABLES + """insert into calls values ('c', '1', 'set', '{"to": 2}'), (null, '2', 'drop', '{}');"""
        """insert into changes values ('c', '1', 't', 2, 'update', '{"a": 1}', '{"a": 2}', 1);"""
        """insert into changes values ('c', '"1"', 't', 3, 'insert', null, '{"a": 1.5}', 9);"""
        """insert into changes values (null, null, 't', 3, 'delete', '{"a": 1.5}', null, 2);"""
        """insert into changes values (null, '2', 't', 3, 'delete', '{"a": 1.5}', null, 2)""",
    )
    journal = read_journal(path)
    assert journal == (
        JournalRow("c", "1", "t", 2, "update", {"a": 1}, {"a": 2}, JournalCall(1, "set", {"to": 2})),
        JournalRow("c", '"1"', "t", 3, "insert", None, {"a": 1.5}),
        JournalRow(None, None, "t", 3, "delete", {"a": 1.5}, None),
        JournalRow(None, "2", "t", 3, "delete", {"a": 1.5}, None, JournalCall(2, "drop", {})),
    )
    write_journal(tmp_path / "copy", journal)
    assert load_journal(tmp_path / "copy") == journal


def test_files_are_written_for_their_owner_alone_also_over_a_looser_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o644)
    write_dump(path, Dump((), {}))
    write_journal(tmp_path / "y", ())
    assert {stat.S_IMODE(file.stat().st_mode) for file in (path, tmp_path / "y")} == {0o600}
    assert load_journal(tmp_path / "y") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "first line"),
        ("{}\n", "first line"),
        ('{"schema": []}\n{"table": 1}\n', "line 2"),
        ('{"schema": []}\n{"table"\n', "line 2"),
    ],
)
def test_a_broken_dump_names_file_and_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_text(text)
    with pytest.raises(StateError, match=words) as caught:
        load_dump(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_no_database_or_journal_is_named(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database at all, " * 100)
    make(tmp_path / "other.db", "create table t(a)")
    for path in (text, tmp_path / "missing.db"):
        with pytest.raises(StateError, match=path.name):
            read_dump(path)
    with pytest.raises(StateError, match=r"other\.db: no such table: changes"):
        read_journal(tmp_path / "other.db")
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize("cell", ["'{'", "'[]'", "1"])
def test_a_journal_with_a_broken_row_is_refused(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "j.db"
    make(
        path,
        f"{TABLES} insert into changes values ('c', '1', 't', 2, 'update', {cell}, null, 1)",
    )
    with pytest.raises(StateError, match="change 1"):
        read_journal(path)


@pytest.mark.parametrize(
    "journal",
    [None, (), (JournalRow("c", "1", "t", 1, "insert", None, {"a": 1}, JournalCall(3, "set", {"a": "\ud800"})),)],
)
def test_a_servers_state_is_written_to_a_folder_and_read_from_it(
    tmp_path: Path, journal: tuple[JournalRow, ...] | None
) -> None:
    schema = ("CREATE TABLE t(a)",)
    state = ServerState(Dump(schema, {"t": {}}), Dump(schema, {"t": {1: {"a": 1}}}), journal)
    write_state(tmp_path, "crm", state)
    assert load_state(tmp_path, "crm") == state


def test_a_missing_dump_and_a_broken_journal_are_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="missing"):
        load_dump(tmp_path / "missing")
    (tmp_path / "j").write_text('{"table": "t"}\n')
    with pytest.raises(StateError, match="line 1"):
        load_journal(tmp_path / "j")


def test_a_journal_row_without_a_table_is_refused_and_an_id_that_is_no_text_stays_itself(tmp_path: Path) -> None:
    make(tmp_path / "a.db", TABLES + "insert into changes values ('c', 7, 't', 1, 'delete', '{}', null, 1)")
    make(tmp_path / "b.db", TABLES + "insert into changes values ('c', '1', null, 1, 'delete', '{}', null, 1)")
    assert read_journal(tmp_path / "a.db")[0].request_id == "7"
    with pytest.raises(StateError, match="change 1"):
        read_journal(tmp_path / "b.db")


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_pipe_in_place_of_a_database_or_its_log_is_refused_at_once(tmp_path: Path, end: str) -> None:
    path = tmp_path / "x.db"
    if end:
        make(path, "create table t(a)")
    os.mkfifo(f"{path}{end}")
    with pytest.raises(StateError, match="no regular file"):
        read_dump(path)
