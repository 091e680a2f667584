import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers.crm import CRM
from servers.database import DatabaseError, init_database, journal_path, open_database, transaction
from servers.journal import Journal
from servers.seed import parse_seed
from servers.ticketing import TICKETING
from tests.servers.wire import changes, made, rows


def test_a_made_database_is_in_wal_mode_with_an_empty_journal_beside_it_and_nothing_else(tmp_path: Path) -> None:
    path = made(tmp_path, "crm")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["crm.db", "crm.db.journal.db"]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(journal_path(path), "PRAGMA journal_mode") == [("wal",)]
    assert changes(path) == []


@pytest.mark.parametrize("there", ["crm.db", "crm.db.journal.db"])
def test_a_file_that_exists_is_never_made_over(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_bytes(b"mine")
    with pytest.raises(DatabaseError, match=f"{there}: exists; remove it"):
        init_database(tmp_path / "crm.db", CRM)
    assert [file.name for file in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_bytes() == b"mine"


def test_a_folder_that_is_absent_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"none/crm\.db: cannot be made"):
        init_database(tmp_path / "none" / "crm.db", CRM)


def test_opening_a_missing_database_says_to_init_and_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"crm\.db: no such database; make it first with --init"):
        open_database(tmp_path / "crm.db", CRM)
    assert list(tmp_path.iterdir()) == []


def test_opening_what_is_no_database_of_the_fixture_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, and long enough to be seen as none" * 20)
    with pytest.raises(DatabaseError, match=r"text\.db: cannot be opened"):
        open_database(tmp_path / "text.db", CRM)
    with pytest.raises(DatabaseError, match=r"crm\.db: has no table tickets, so it is no ticketing database"):
        open_database(made(tmp_path, "crm"), TICKETING)


def test_opening_never_seeds_again(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM tickets")
    open_database(path, TICKETING).close()
    assert rows(path, "SELECT * FROM tickets") == []


def test_a_journal_that_is_gone_is_made_anew_and_empty(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    journal_path(path).unlink()
    open_database(path, TICKETING).close()
    assert changes(path) == []


def test_a_path_with_signs_that_mean_something_in_a_uri_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%41 é.db"
    init_database(path, CRM)
    open_database(path, CRM).close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, f"{path.name}.journal.db"]


def test_a_writer_locks_the_database_and_the_journal_before_it_reads(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    with closing(open_database(path, TICKETING)) as first, transaction(first, writes=True):
        for file in (path, journal_path(path)):
            with (
                closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as second,
                pytest.raises(sqlite3.OperationalError, match="locked"),
            ):
                second.execute("BEGIN IMMEDIATE")


def test_a_commit_that_breaks_between_the_files_leaves_a_change_without_a_row_never_a_row_without_a_change(
    tmp_path: Path,
) -> None:
    path = made(tmp_path, "ticketing")
    with closing(open_database(path, TICKETING)) as connection:
        journal = Journal(connection, "wire-1")

        def describe(request: int, letter: str) -> None:
            with transaction(connection, writes=True), journal.call(request, "tool", {}):
                connection.execute("UPDATE tickets SET description = ? WHERE id = 1", (letter * 100_000,))

        describe(1, "a")
        # The next change takes 100 kB in the database's log and, with both states, 200 kB in the journal's.
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (270_000, hard))
        try:
            with pytest.raises(sqlite3.OperationalError):
                describe(2, "b")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert rows(path, "SELECT substr(description, 1, 1) FROM tickets WHERE id = 1") == [("b",)]
    assert [row[1] for row in changes(path)] == ["1"]


def test_what_is_made_again_of_the_same_rows_is_the_same_file_and_of_others_another(tmp_path: Path) -> None:
    def seeded(name: str, tier: str) -> Path:
        row = {"id": "C1", "name": "Amy", "tier": tier, "status": "active"}
        init_database(tmp_path / name, CRM, parse_seed({"customers": [row]}, "here"))
        return tmp_path / name

    one, two, other = seeded("one", "gold"), seeded("two", "gold"), seeded("other", "basic")
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()
    assert journal_path(one).read_bytes() == journal_path(two).read_bytes()
    assert one.stat().st_mode == two.stat().st_mode
    with closing(sqlite3.connect(two)) as database:
        database.execute("update customers set tier = 'none'")
        database.commit()
    assert seeded("three", "gold").read_bytes() == one.read_bytes()
