import io
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from harness.assertions.assertion import parse_assertion
from harness.evidence import Dump, Row
from harness.hiding import hidden_streams, make_hiding, traceback_text
from harness.redacted import hidden_dump, hidden_journal, recorded_assertions, recorded_expected, recorded_requests
from harness.state import load_dump, load_journal, write_dump, write_journal
from proxy.spans import JSON
from tests.harness.made import change, dump, ticket

SECRET = "Correct-Horse-77"
PIN = "90210902"
HIDING = make_hiding({"KEY": SECRET, "PIN": PIN}, bytes(32))
MARK = HIDING.text(SECRET)


def test_a_dump_is_written_without_secrets_and_can_be_read_again(tmp_path: Path) -> None:
    blob = b64encode(b"\xff\x00" + SECRET.encode()).decode()
    row: Row = {"id": 1, SECRET: int(PIN), MARK: 1.5, "blob": {"$blob": blob}, "digest": "0f" * 32, "none": None}
    real = Dump((f"CREATE TABLE t(id, note text default '{SECRET}')",), {"t": {int(PIN): row, 2: {"id": 2}}})
    write_dump(tmp_path / "dump", hidden_dump(HIDING, real))
    text = (tmp_path / "dump").read_text()
    for form in (SECRET, PIN, b64encode(SECRET.encode()).decode()[:20], "0f" * 32):
        assert form not in text
    found = load_dump(tmp_path / "dump")
    (number, *_), rows = found.tables["t"], found.tables["t"]
    assert number < 0
    assert found.schema == (real.schema[0].replace(SECRET, MARK),)
    hidden = rows[number]["blob"]
    assert isinstance(hidden, dict)
    assert b64decode(str(hidden["$blob"])) == b"\xff\x00" + MARK.encode()
    assert len(rows[number]) == len(row), "a column may not be lost where two become equal"
    assert rows[2] == {"id": 2}


def test_a_row_has_one_number_in_every_dump_and_in_the_journal(tmp_path: Path) -> None:
    row = {**ticket(1, description=SECRET), "id": int(PIN)}
    journal = [replace(change(None, row, request_id=f'"{SECRET}"'), rowid=int(PIN))]
    write_journal(tmp_path / "journal", hidden_journal(HIDING, journal))
    (found,) = load_journal(tmp_path / "journal")
    (number,) = hidden_dump(HIDING, dump(row)).tables["tickets"]
    assert found.rowid == number
    assert found.request_id == f'"{MARK}"'
    (asked,) = recorded_requests(HIDING, journal)
    assert (asked.request_id, asked.after) == (f'"{MARK}"', row), "what is judged are real rows"


def test_what_is_expected_of_calls_gets_the_marks_of_the_record_and_state_stays_as_it_is() -> None:
    called, state = (
        parse_assertion({"type": "tool_called", "tool": f"mcp/{SECRET}/{SECRET}", "arguments": {"a": [SECRET, 1]}}),
        parse_assertion({"type": "state", "server": "s", "query": f"select '{SECRET}'", "equals": [[SECRET]]}),
    )
    first, second = recorded_assertions(HIDING, [called, state])
    assert first.model_dump(exclude_unset=True) == {
        "type": "tool_called",
        "tool": f"mcp/{SECRET}/{MARK}",
        "arguments": {"a": [MARK, 1]},
    }
    assert second is state
    expected: dict[str, JSON] = {"denied_tools": [f"mcp/{SECRET}/x", SECRET], "secrets": [{"value": SECRET}]}
    assert recorded_expected(HIDING, expected) == {
        "denied_tools": [f"mcp/{SECRET}/x", MARK],
        "secrets": [{"value": MARK}],
    }


def test_what_this_process_prints_goes_without_secrets_in_whatever_pieces_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output, errors = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", errors)
    with hidden_streams(HIDING):
        for char in f"one {SECRET}\ntwo":
            sys.stdout.write(char)
            sys.stderr.write(char)
    assert output.getvalue() == errors.getvalue() == f"one {MARK}\ntwo"


def test_a_traceback_has_no_secret_of_several_lines() -> None:
    hiding = make_hiding({"KEY": "two lines\nof a secret"}, bytes(32))
    text = traceback_text(hiding, ValueError("it was two lines\nof a secret"))
    assert text == f"ValueError: it was {hiding.text('two lines' + chr(10) + 'of a secret')}\n"
