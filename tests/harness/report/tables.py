"""Reads the tables of a Markdown document as GitHub does, for tests."""

import html
import re

_CELLS = re.compile(r"(?<!\\)\|")


def tables(text: str) -> list[list[list[str]]]:
    """Each table as rows of cells: the head, and every line below it; the cells as they look."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [html.unescape(re.sub(r"</?span>", "", cell)).strip() for cell in _CELLS.split(line)[1:-1]]
        if not inside:
            found.append([])
        inside = True
        if set(cells) != {"---"}:
            found[-1].append(cells)
    return found
