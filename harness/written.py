"""Where a scenario is written: its file as seen from the root of its repository, and the line of each assertion.

Refuses to know how lines are found and what came of the scenario.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Place(NamedTuple):
    """An assertion: the name of its finding, its type, and its line in the file, from 1."""

    finding: str
    type: str
    line: int


@dataclass(frozen=True, slots=True)
class Written:
    """`path` is relative and has `/` between its parts; `line` is the scenario's, `places` are its assertions'."""

    path: str
    line: int = 1
    places: tuple[Place, ...] = ()

    def place(self, number: int, finding: str) -> Place:
        """Where the assertion of the finding with this number stands.

        A finding that belongs to no assertion is its own type, and stands in the scenario's line.
        """
        if number < len(self.places) and self.places[number].finding == finding:
            return self.places[number]
        return Place(finding, finding, self.line)
