"""The pages of the documentation, their blocks, and what stands under a heading of theirs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md")))


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), "")

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    found: list[str] | None = None
    start, info = 0, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if found is not None and line.strip() == "```":
            language, *words = info.split() or [""]
            yield Block(page, start, language, tuple(words), "".join(f"{one}\n" for one in found))
            found = None
        elif found is not None:
            found.append(line)
        elif line.startswith("```"):
            found, start, info = [], number, line[3:]
    assert found is None, f"{page.name}:{start}: the block has no end"


BLOCKS = [block for page in PAGES for block in blocks(page)]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}


def section(page: str, heading: str) -> str:
    """The text under a heading, without what stands under further headings."""
    found = re.search(rf"^#+ {re.escape(heading)}$\n(.*?)(?=^#+ |\Z)", TEXTS[page], re.DOTALL | re.MULTILINE)
    assert found is not None, f"{page} has no heading {heading!r}"
    return found[1]


def first_cells(text: str) -> list[str]:
    """Every name in backticks in the first column of the tables of a text."""
    cells = re.findall(r"^ *\|([^|]*)\|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def ticked(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def words_of(literal: object) -> set[str]:
    return {str(word) for word in get_args(literal)}


def fields(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}
