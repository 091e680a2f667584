"""The files fixture as a process, and as several over one folder."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from servers.catalogue import FIXTURES
from servers.command import main
from servers.database import journal_path
from tests.servers.test_stdio import parameters
from tests.servers.wire import changes, content, exchange, made, refusal, rows

MODES = ["legacy", "2026-07-28"]


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_task_over_stdio_leaves_files_and_journal(tmp_path: Path, mode: str) -> None:
    seed, path = tmp_path / "seed.yaml", tmp_path / "files.db"
    seed.write_text("files:\n- {path: a.txt, text: 'first'}\n")
    main(FIXTURES["files"], ["--db", str(path), "--init", "--seed", str(seed)])

    async def run(server: StdioServerParameters) -> None:
        async with Client(server, mode=mode) as client:
            assert [r.uri for r in (await client.list_resources()).resources] == ["files:///a.txt"]
            content(await client.call_tool("write_file", {"path": "b/c.txt", "content": "second"}))
            content(await client.call_tool("delete_file", {"path": "a.txt"}))
            assert refusal(await client.call_tool("read_file", {"path": str(path / "b" / "c.txt")})).endswith(
                "is absolute; give it relative to the folder, as notes/today.md"
            )

    anyio.run(run, parameters(path, "wire-files"))
    assert [(change[0], change[4]) for change in changes(path)] == [("wire-files", "insert"), ("wire-files", "delete")]
    assert [str(file.relative_to(path)) for file in sorted(path.rglob("*"))] == ["b", "b/c.txt"]


def test_processes_that_write_one_folder_at_once_leave_one_chain_of_changes(tmp_path: Path) -> None:
    path = made(tmp_path, "files")

    async def writer(number: int) -> None:
        async with Client(parameters(path, f"wire-{number}")) as client:
            for turn in range(10):
                content(await client.call_tool("write_file", {"path": "plan.txt", "content": f"{number}/{turn}"}))

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(2):
                tasks.start_soon(writer, number)

    anyio.run(run)
    journal = changes(path)
    assert len(journal) == 20
    for earlier, later in pairwise(journal):
        assert later[5] == earlier[6]
    last = journal[-1][6]
    assert isinstance(last, dict)
    assert (path / "plan.txt").read_text() == last["text"]


def test_an_end_of_input_ends_the_server_without_a_word(tmp_path: Path) -> None:
    path = made(tmp_path, "files")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "servers.files", "--db", str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("WIRETRAP_")},
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["files.db", "files.db.journal.db"]


def test_starts_and_executions_are_in_the_journal_of_a_folder_too(tmp_path: Path) -> None:
    path = made(tmp_path, "files")
    exchange(path, "wire-1", [(7, "write_file", {"path": "new.txt", "content": "x"})])
    assert rows(journal_path(path), "SELECT connection FROM connections") == [("wire-1",)]
    told = "SELECT tool, arguments, op FROM changes JOIN calls ON calls.rowid = call"
    assert rows(journal_path(path), told) == [("write_file", '{"path": "new.txt", "content": "x"}', "insert")]
