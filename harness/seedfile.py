"""Seed files: the rows that a fixture's database starts with, `{table: [{column: value}]}`.

Refuses to know which tables a fixture has; the fixture itself refuses those that it does not.
"""

from pathlib import Path

from harness.intake import Intake, open_document
from proxy.problem import Problem, describe
from proxy.spans import JSON


def is_seed(data: JSON) -> bool:
    """Whether a file's value looks like a seed: a map of nothing but lists of maps."""
    return isinstance(data, dict) and bool(data) and all(_is_table(rows) for rows in data.values())


def _is_table(rows: JSON) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def read_seed(path: Path, problems: list[Problem]) -> dict[str, JSON] | None:
    """The rows of a seed file by table, None where it cannot be used; what is wrong is added to `problems`."""
    document = open_document(path, problems)
    if document is None:
        return None
    intake, data = Intake(document), document.data
    if not isinstance(data, dict):
        intake.wrong((), f"expected a map from tables to lists of rows, not {describe(data)}")
        data = {}
    for table, rows in data.items():
        if not isinstance(rows, list):
            intake.wrong((table,), f"expected a list of rows, not {describe(rows)}")
            continue
        for place, row in enumerate(rows):
            if not isinstance(row, dict):
                intake.wrong((table, place), f"expected a map from columns to values, not {describe(row)}")
                continue
            for column, value in row.items():
                if isinstance(value, list | dict):
                    intake.wrong((table, place, column), f"expected text, a number or null, not {describe(value)}")
    problems.extend(intake.problems)
    return None if intake.problems else data
