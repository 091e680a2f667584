"""What is kept of a trial for a person holds no secret of the run, whatever ended it."""

import json
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from harness.hiding import make_hiding
from harness.keeping import take_secrets_out
from harness.privatefolder import clear_stale, make_private_folder
from proxy.spans import JSON
from tests.harness.models.provider_standin import as_json, stand_in
from tests.harness.runs import SERVER, run, write_scenario

KEY = bytes(range(32))
SECRET = "Gx81-secret-of-this-run"
HIDING = make_hiding({"a": SECRET}, KEY)


def told(folder: Path, secret: str) -> list[Path]:
    """The files that have the secret in them, in any form."""
    finds = make_hiding({"it": secret}, bytes(32)).finds
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if finds(path.read_bytes().decode("utf-8", "surrogateescape"))]


def cells(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM notes ORDER BY rowid").fetchall()


def database(path: Path, *texts: object, mode: str = "wal") -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE notes (text, CHECK (length(text) < 70000))")
        connection.executemany("INSERT INTO notes VALUES (?)", [(text,) for text in texts])


def test_marks_stand_for_secrets_in_texts_and_in_cells(tmp_path: Path) -> None:
    mark = HIDING.text(SECRET)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "config.json").write_text(json.dumps({"env": {"KEY": SECRET}, "key": KEY.hex()}))
    # Over several pages, in a row that is gone, in a blob.
    long = "x" * 5000 + SECRET + "y" * 5000
    database(tmp_path / "a.db", "plain", f"a {SECRET} b", long, SECRET.encode(), 7)
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO notes VALUES (?)", (f"gone {SECRET}",))
        connection.execute("DELETE FROM notes WHERE text LIKE 'gone%'")
    take_secrets_out(tmp_path, HIDING)
    assert told(tmp_path, SECRET) == []
    assert json.loads((tmp_path / "deep" / "config.json").read_text()) == {"env": {"KEY": mark}, "key": "[redacted]"}
    assert [cell for (cell,) in cells(tmp_path / "a.db")] == [
        "plain", f"a {mark} b", long.replace(SECRET, mark), mark.encode(), 7,
    ]  # fmt: skip
    assert (tmp_path / "deep" / "config.json").stat().st_mode & 0o777 == 0o600
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    take_secrets_out(tmp_path, HIDING)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_has_no_secret_stays_byte_by_byte_and_what_cannot_be_cleaned_goes(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.txt"
    inside.mkdir()
    outside.write_text(SECRET)
    database(inside / "clean.db", "plain", mode="delete")
    (inside / "picture").write_bytes(bytes(range(256)))
    stays = {path: path.read_bytes() for path in inside.iterdir()}
    (inside / "link").symlink_to(outside)
    (inside / "binary").write_bytes(b"\0" + SECRET.encode())
    (inside / "torn.db").write_bytes(b"SQLite format 3\0" + SECRET.encode() * 99)
    os.mkfifo(inside / "pipe")
    with closing(sqlite3.connect(inside / "odd.db")) as connection:
        connection.execute("CREATE TABLE odd (text PRIMARY KEY) WITHOUT ROWID")
        connection.execute("INSERT INTO odd VALUES (?)", (SECRET,))
        connection.commit()
    take_secrets_out(inside, HIDING)
    assert {path.name for path in inside.iterdir()} == {"link", "clean.db", "picture"}
    assert {path: path.read_bytes() for path in stays} == stays
    assert outside.read_text() == SECRET


def test_of_a_folder_to_keep_whose_run_was_killed_the_secrets_are_taken_out_by_whoever_starts_next(
    tmp_path: Path,
) -> None:
    made = make_private_folder(keep=HIDING, where=tmp_path)
    assert made.lock is not None
    (made.path / "context.json").write_text(json.dumps({"redact_key": KEY.hex(), "secrets": [SECRET]}))
    (made.path / "context-peer.json").write_text(json.dumps({"redact_key": KEY.hex(), "secrets": [SECRET]}))
    (made.path / "mcp.json").write_text(f'{{"env": "{SECRET}"}}')
    clear_stale(tmp_path)
    assert len(told(made.path, SECRET)) == 3
    os.close(made.lock)
    assert clear_stale(tmp_path) == clear_stale(tmp_path) == 0
    assert told(made.path, SECRET) == told(made.path, KEY.hex()) == []
    assert len(list(made.path.iterdir())) == 3


def test_no_secret_is_in_what_is_kept_of_a_run_whatever_way_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose provider refuses, an agent over HTTP that is not there, and one that kills its trial's worker."""
    given = {name: f"{name}-value-4711-Qx" for name in ("environment", "server", "header", "variable", "provider")}
    monkeypatch.setenv("OPENAI_API_KEY", given["provider"])
    monkeypatch.setenv("SOME_TOKEN", given["environment"])
    monkeypatch.setenv("HEADER_TOKEN", given["variable"])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    server: JSON = {"echo": {**SERVER, "env": {"ECHO_API_KEY": given["server"]}}}
    killing: JSON = [sys.executable, "-S", "-c", "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"]
    http: JSON = {
        "url": "http://127.0.0.1:9/",
        "headers": {"Authorization": f"Bearer {given['header']}"},
        "header_env": {"X-Api-Key": "HEADER_TOKEN"},
    }
    with stand_in() as api:
        api.answers = [as_json({"error": {"message": "no"}}, 400)]
        model: JSON = {"model": {"provider": "openai", "name": "gpt-4o", "base_url": api.url}}
        (tmp_path / "model_agent.yaml").write_text(json.dumps(model))
        agents: dict[str, JSON] = {
            "model": {"scripted": "model_agent.yaml"},
            "http": {"http": http},
            "killing": {"command": killing},
        }
        ours = [write_scenario(tmp_path, id=name, servers=server, agent=agent) for name, agent in agents.items()]
        ran = run(ours, tmp_path, keep=True)
    trials = [trial for scenario in ran.result.scenarios for trial in scenario.trials]
    assert [trial.verdict.status for trial in trials] == ["agent_crash", "infra_error", "agent_crash"]
    kept = list(temporary.iterdir())
    assert len(kept) == 3
    assert all((folder / "context.json").is_file() for folder in kept)
    assert {name: told(tmp_path / "runs", value) for name, value in given.items()} == {name: [] for name in given}
    assert {name: told(temporary, value) for name, value in given.items()} == {name: [] for name in given}
