"""One value of a SQLite cell as JSON, and when two of them are the same.

Refuses to know rows and tables. Integer, real, text and null stand for themselves, a blob as {"$blob": base64}; bytes
of a text that are not UTF-8 stand as lone surrogates.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from math import isinf

from harness.evidence import Row
from proxy.spans import JSON

Value = int | float | str | bytes | None
"""What sqlite3 gives and takes."""


def to_cell(value: Value) -> JSON:
    """The value as JSON."""
    return {"$blob": b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def from_cell(cell: JSON) -> Value:
    """The value that `to_cell` made the JSON of. Raises ValueError for JSON that no cell has."""
    match cell:
        case {"$blob": str() as text, **rest} if not rest:
            return b64decode(text, validate=True)
        case bool():
            raise ValueError("SQLite has no booleans: write 1 or 0, or the text")
        case None | int() | float() | str():
            return cell
        case _:
            raise ValueError(f'a cell is null, a number, text or {{"$blob": base64}}, not {json.dumps(cell)}')


def decode_text(raw: bytes) -> str:
    """A text cell's bytes as text."""
    return raw.decode("utf-8", "surrogateescape")


def is_same(left: JSON, right: JSON) -> bool:
    """Typed equality of two cells: numbers by value, never equal to text or to a boolean; blobs by their bytes."""
    match left, right:
        case (bool(), _) | (_, bool()):
            return False
        case ((int() | float()), (int() | float())):
            return left == right
        case {"$blob": str() as one}, {"$blob": str() as other}:
            return one == other
        case str(), str():
            return left == right
        case None, None:
            return True
        case _:
            return False


def is_near(left: JSON, right: JSON) -> bool:
    """As is_same, but reals that agree in 15 digits are one: SQLite's own JSON functions write no more of them."""
    if is_same(left, right):
        return True
    match left, right:
        case ((int() | float()), (int() | float())) if not isinstance(left, bool) and not isinstance(right, bool):
            return isinstance(left, float) | isinstance(right, float) and f"{left:.15g}" == f"{right:.15g}"
        case _:
            return False


def show_cell(cell: JSON, hide: Callable[[str], str] = str, limit: int = 120) -> str:
    """A cell in a reason: text in quotes, null, a number, or a blob's size; cut past `limit` characters.

    `hide` takes the secrets out of a text, which must come before the cut: of half a secret nobody can tell.
    """
    match cell:
        case {"$blob": str() as text}:
            shown = f"a blob of {len(b64decode(text))} bytes"
        case str():
            shown = "'" + hide(cell).encode("utf-8", "backslashreplace").decode("utf-8") + "'"
        case None:
            shown = "null"
        case _:
            shown = json.dumps(cell)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def row_text(row: Row) -> str:
    """A row as a JSON object on one line, ASCII only; an infinite real as a number that overflows to it."""
    cells = [f"{json.dumps(name)}: {_cell_text(cell)}" for name, cell in row.items()]
    return "{" + ", ".join(cells) + "}"


def _cell_text(cell: JSON) -> str:
    if isinstance(cell, float) and isinf(cell):
        return "9e999" if cell > 0 else "-9e999"
    return json.dumps(cell)
