"""What could be seen of each target, as a matrix: a row for each target, a column for each measure.

Refuses to know runs and files.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from harness.observability import MEASURES, Measure, Measures, Seen
from harness.report.calltable import columns, cut
from proxy.spans import JSON
from proxy.visible import visible

SEEN: tuple[Seen, ...] = get_args(Seen)
REASONS = 3
"""Different reasons that are kept of one cell."""
NAMES: Mapping[str, str] = {name: name.replace("_", " ").replace("handovers", "hand-overs") for name in MEASURES}
"""How a person reads the measures."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one target: in how many of its trials it was what, and why, most frequent first."""

    counts: Mapping[Seen, int]
    why: tuple[str, ...]

    @property
    def text(self) -> str:
        """`observed`, or `derived 2/3, not observable 1/3` where trials differ."""
        total = sum(self.counts.values())
        there = [(seen, self.counts[seen]) for seen in SEEN if self.counts[seen]]
        match there:
            case [(seen, _)]:
                return seen
            case _:
                return ", ".join(f"{seen} {count}/{total}" for seen, count in there)


Matrix: TypeAlias = Mapping[str, Mapping[str, Cell]]
"""Cells by target and measure."""
Trials: TypeAlias = Iterable[tuple[str, Measures]]
"""The target of each trial, and what could be seen; one without measures is left out."""


def matrix(trials: Trials) -> dict[str, dict[str, Cell]]:
    """The matrix of trials, the targets in order of their first one."""
    found: dict[str, list[Measures]] = {}
    for target, measures in trials:
        if target and measures:
            found.setdefault(target, []).append(measures)
    return {
        target: {name: _cell([one[name] for one in seen if name in one]) for name in MEASURES}
        for target, seen in found.items()
    }


def _cell(measures: Sequence[Measure]) -> Cell:
    counts = Counter(measure.seen for measure in measures)
    why = Counter(measure.why for measure in measures)
    return Cell({seen: counts[seen] for seen in SEEN}, tuple(text for text, _ in why.most_common(REASONS)))


def matrix_as_json(found: Matrix) -> dict[str, JSON]:
    """`{TARGET: {MEASURE: {observed, derived, not observable, why}}}`, the counts in trials."""
    return {target: {name: _as_json(cell) for name, cell in cells.items()} for target, cells in found.items()}


def _as_json(cell: Cell) -> JSON:
    counts: dict[str, JSON] = {seen: cell.counts[seen] for seen in SEEN}
    return {**counts, "why": [*cell.why]}


def matrix_lines(found: Matrix) -> Iterator[str]:
    """The matrix for a person; without targets there is none."""
    if not found:
        return
    rows = [["seen of each target", *NAMES.values()]]
    rows += [[visible(target), *(cell.text for cell in cells.values())] for target, cells in found.items()]
    widths = [max(columns(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(text + " " * (width - columns(text)) for text, width in zip(row, widths, strict=True)).rstrip()


def reasons(found: Matrix, most: int = 110) -> Iterator[str]:
    """Under each target a line for each measure: what it is, and why."""
    for target, cells in found.items():
        yield visible(target)
        for name, cell in cells.items():
            why = cut(visible("; ".join(cell.why)), most)
            yield f"  {NAMES[name]:<17}{cell.text}: {why}"
