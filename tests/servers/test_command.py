import signal
import subprocess
import sys
from pathlib import Path

import pytest

from servers.catalogue import FIXTURES
from servers.command import main
from tests.servers.wire import changes, made, rows


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says on stderr before it exits 2."""
    with pytest.raises(SystemExit) as caught:
        main(FIXTURES["ticketing"], arguments)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_init_makes_and_seeds_the_file_and_exits(tmp_path: Path) -> None:
    main(FIXTURES["ticketing"], ["--db", str(tmp_path / "t.db"), "--init"])
    assert rows(tmp_path / "t.db", "SELECT id FROM tickets") == [(1,), (2,)]


def test_init_takes_a_seed_file(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text("tickets:\n- {id: 7, customer_id: CUST-001, description: no, tier: premium}\n")
    main(FIXTURES["ticketing"], ["--db", str(tmp_path / "t.db"), "--init", "--seed", str(seed)])
    assert rows(tmp_path / "t.db", "SELECT * FROM tickets") == [(7, "CUST-001", "open", "premium", "no")]


def test_a_bad_seed_exits_2_with_one_line_that_names_file_table_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text("tickets:\n- {id: 7, customer_id: 5, description: x}\n")
    said = refused(capsys, "--db", str(tmp_path / "t.db"), "--init", "--seed", str(seed))
    assert said == (
        f"servers.ticketing: {seed}: table tickets, row 1, column customer_id: must be text (in quotes), not 5\n"
    )
    assert not (tmp_path / "t.db").exists()


def test_a_second_init_and_a_seed_without_init_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path, "ticketing")
    assert refused(capsys, "--db", str(path), "--init") == (
        f"servers.ticketing: {path}: exists; remove it, or give another --db\n"
    )
    assert "--seed needs --init" in refused(capsys, "--db", str(path), "--seed", "x.yaml")


@pytest.mark.parametrize("fixture", ["crm", "ticketing"])
def test_a_start_on_a_missing_file_exits_2_and_says_to_init(tmp_path: Path, fixture: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-P", "-m", f"servers.{fixture}", "--db", "absent.db"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"servers.{fixture}: absent.db: no such database; make it first with --init\n"
    assert list(tmp_path.iterdir()) == []


def test_making_a_file_does_not_import_the_sdk(tmp_path: Path) -> None:
    program = (
        "import sys; from servers.catalogue import FIXTURES; from servers.command import main;"
        f"main(FIXTURES['crm'], ['--db', {str(tmp_path / 'crm.db')!r}, '--init']);"
        "sys.exit('mcp' in sys.modules or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-P", "-c", program], check=False).returncode == 0
    assert (tmp_path / "crm.db").exists()


def test_an_end_of_input_ends_the_server_without_a_word_and_leaves_no_log_file(tmp_path: Path) -> None:
    path = made(tmp_path, "crm")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "servers.crm", "--db", str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["crm.db", "crm.db.journal.db"]


def started(path: Path) -> subprocess.Popen[bytes]:
    """A server that has answered `initialize`."""
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", f"servers.{path.stem}", "--db", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
    )
    assert b'"id":1' in server.stdout.readline()
    return server


def test_an_interrupt_ends_the_server_at_once_while_its_input_is_open(tmp_path: Path) -> None:
    with started(made(tmp_path, "crm")) as server:
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == -signal.SIGINT
        assert server.stderr is not None
        assert server.stderr.read() == b""


def test_a_server_that_nobody_reads_ends_without_a_traceback_and_its_change_is_whole(tmp_path: Path) -> None:
    path = made(tmp_path, "ticketing")
    with started(path) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.close()
        server.stdin.write(
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
            b'{"jsonrpc":"2.0","id":2,"method":"tools/call",'
            b'"params":{"name":"delete_ticket","arguments":{"ticket_id":1}}}\n'
        )
        assert server.wait(60) == -signal.SIGPIPE
        assert server.stderr is not None
        assert server.stderr.read() == b""
    assert rows(path, "SELECT id FROM tickets") == [(2,)]
    assert [(row[1], row[4]) for row in changes(path)] == [("2", "delete")]
