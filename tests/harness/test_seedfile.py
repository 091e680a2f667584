from pathlib import Path

import pytest

from harness.seedfile import is_seed, read_seed
from proxy.problem import Problem


def test_rows_are_read_by_table_and_text_stays_text(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("tickets:\n- {id: 1, status: no, due: 2026-01-01, note: null}\nempty: []")
    problems: list[Problem] = []
    assert read_seed(file, problems) == {
        "tickets": [{"id": 1, "status": "no", "due": "2026-01-01", "note": None}],
        "empty": [],
    }
    assert problems == []


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("", 1, ""),
        ("- {id: 1}", 1, ""),
        ("tickets: {id: 1}", 1, "tickets"),
        ("tickets:\n- 1", 2, "tickets[0]"),
        ("tickets:\n- id: 1\n  more: [1]", 3, "tickets[0].more"),
        ("tickets:\n- id: 1\n- id: {}", 3, "tickets[1].id"),
        ("tickets: []\ntickets: []", 2, ""),
    ],
)
def test_a_seed_that_is_wrong_names_file_line_and_field(tmp_path: Path, text: str, line: int, field: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    problems: list[Problem] = []
    assert read_seed(file, problems) is None
    assert [(problem.file, problem.line, problem.field) for problem in problems] == [(str(file), line, field)]


def test_a_seed_is_a_map_of_nothing_but_lists_of_maps() -> None:
    assert is_seed({"tickets": [{"id": 1}], "more": []})
    assert not is_seed({})
    assert not is_seed({"tickets": [1]})
    assert not is_seed({"tickets": [], "id": "a"})
    assert not is_seed([])
