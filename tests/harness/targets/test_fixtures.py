"""What the harness makes of a fixture's place, the folder of files above all."""

import os
from pathlib import Path

import pytest

from harness.assertions.assertion import parse_assertion
from harness.diff import diff
from harness.evidence import Dump, ServerState
from harness.judge import judge
from harness.query import run_query
from harness.state import StateError, load_dump, read_dump, read_journal, write_dump
from harness.targets.fixtures import FixtureError, dump_fixture, fixture_offers, init_fixture, journal_path
from harness.trace import ToolCall
from harness.verdict import Verdict
from proxy.spans import JSON
from tests.harness.made import call, wire
from tests.servers.wire import exchange

SPECS: list[JSON] = [
    {"type": "tool_called", "tool": "mcp/files/write_file"},
    {
        "type": "state",
        "server": "files",
        "query": "select text from files where path = 'plan.txt'",
        "equals": [["new"]],
    },
    {"type": "state_unchanged", "except": [{"server": "files", "table": "files", "where": {"path": "plan.txt"}}]},
]
WRITE: dict[str, object] = {"path": "plan.txt", "content": "new"}
WRITTEN = call("mcp/files/write_file", {"path": "plan.txt", "content": "new"}, seq=4, request_id="7")
DELETED = call("mcp/files/delete_file", {"path": "README.md"}, seq=6, request_id="8")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "files.db"
    init_fixture("files", path, None, None)
    return path


def verdict(place: Path, before: Dump, *calls: ToolCall) -> Verdict:
    state = ServerState(before, dump_fixture("files", place), read_journal(journal_path(place)))
    return judge([parse_assertion(spec) for spec in SPECS], wire(*calls, state={"files": state}), "completed")


@pytest.mark.parametrize("name", sorted(fixture_offers()))
def test_every_fixture_is_made_and_dumped_and_nothing_differs_yet(name: str, tmp_path: Path) -> None:
    init_fixture(name, tmp_path / "x.db", None, None)
    dump = dump_fixture(name, tmp_path / "x.db")
    assert any(dump.tables.values())
    assert diff(dump, dump_fixture(name, tmp_path / "x.db")) == ()
    with pytest.raises(FixtureError, match=f"fixture {name}: .*exists"):
        init_fixture(name, tmp_path / "x.db", None, None)


def test_a_database_is_dumped_as_it_always_was(tmp_path: Path) -> None:
    init_fixture("mail", tmp_path / "x.db", None, None)
    assert dump_fixture("mail", tmp_path / "x.db") == read_dump(tmp_path / "x.db")


def test_a_change_by_a_recorded_call_is_explained(place: Path) -> None:
    before = dump_fixture("files", place)
    exchange(place, "c1", [(7, "write_file", WRITE)])
    assert verdict(place, before, WRITTEN).result == "pass"


def test_a_file_that_another_call_took_away_is_named_by_its_path_and_call(place: Path) -> None:
    before = dump_fixture("files", place)
    exchange(place, "c1", [(7, "write_file", WRITE), (8, "delete_file", {"path": "README.md"})])
    found = verdict(place, before, WRITTEN, DELETED)
    assert found.result == "fail"
    assert "files.files row 'README.md' was deleted" in found.reason
    assert "by mcp/files/delete_file" in found.reason


@pytest.mark.parametrize("deed", ["write", "link", "delete", "write over"])
def test_what_is_done_beside_the_server_is_unexplained(place: Path, deed: str) -> None:
    before = dump_fixture("files", place)
    exchange(place, "c1", [(7, "write_file", WRITE)])
    match deed:
        case "write":
            (place / "by hand.txt").write_text("x")
        case "link":
            (place / "by hand.txt").symlink_to("/etc")
        case "delete":
            (place / "README.md").unlink()
        case "write over":
            (place / "plan.txt").write_text("new ")
    found = verdict(place, before, WRITTEN)
    assert found.result == "fail"
    (unexplained,) = [finding for finding in found.findings if finding.id == "state_unexplained"]
    assert unexplained.result == "fail"
    assert "no recorded call explains it" in unexplained.reason


def test_a_change_before_a_call_is_not_hidden_by_the_call(place: Path) -> None:
    before = dump_fixture("files", place)
    (place / "plan.txt").write_text("by hand")
    exchange(place, "c1", [(7, "write_file", WRITE)])
    (unexplained,) = [f for f in verdict(place, before, WRITTEN).findings if f.id == "state_unexplained"]
    assert unexplained.result == "fail"
    assert "row 'plan.txt'" in unexplained.reason


def test_a_change_whose_call_nobody_recorded_is_unexplained(place: Path) -> None:
    before = dump_fixture("files", place)
    exchange(place, "c1", [(7, "write_file", WRITE), (9, "delete_file", {"path": "README.md"})])
    (unexplained,) = [f for f in verdict(place, before, WRITTEN).findings if f.id == "state_unexplained"]
    assert unexplained.result == "fail"
    assert "files.files row 'README.md'" in unexplained.reason
    assert "request 9 of connection c1, and no recorded call of files has that id" in unexplained.reason


def test_a_dump_of_files_survives_the_run_folder_and_is_queried_whatever_the_names_are(
    place: Path, tmp_path: Path
) -> None:
    (place / os.fsdecode(b"caf\xe9")).write_bytes(b"\xff")
    (place / "é").write_text("text")
    dump = dump_fixture("files", place)
    write_dump(tmp_path / "dump.jsonl", dump)
    loaded = load_dump(tmp_path / "dump.jsonl")
    assert loaded == dump
    assert diff(dump, loaded) == ()
    answer = run_query(loaded, "select path, kind, bytes, text from files order by path")
    assert ("caf\udce9", "file", 1, None) in answer.rows
    assert ("é", "file", 4, "text") in answer.rows


def test_a_folder_that_is_gone_is_an_error_that_names_it(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    with pytest.raises(StateError, match=r"files\.db"):
        dump_fixture("files", place)
