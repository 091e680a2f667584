"""What is wrong with a file that a person wrote: where it stands, which field, and what to do.

Refuses to know YAML, policy and scenarios.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from proxy.spans import JSON
from proxy.visible import visible

Path: TypeAlias = "tuple[str | int, ...]"
"""The way to a value inside a document: keys and places in lists, from the top."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `line` counts from 1, None where no line is known; `field` is "" for the whole file.

    As text it is one line; what a terminal would obey in a name or a message shows as an escape.
    """

    file: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return visible(f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}")


class ProblemError(ValueError):
    """A file that cannot be used; `problems` has everything that is wrong with it, and the message says all of it.

    They are in order of their lines, file by file.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = tuple(problems)
        place = {name: number for number, name in enumerate(dict.fromkeys(problem.file for problem in found))}
        self.problems = tuple(sorted(found, key=lambda problem: (place[problem.file], problem.line or 0)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def field_name(path: Path) -> str:
    """The path as a person reads it: `rules[0].deny`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def describe(value: JSON) -> str:
    """The value as an error message names it, cut when it is long."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"the truth value {str(value).lower()}"
        case int() | float():
            return f"the number {value!r}" if abs(value) < 10**30 else "a very large number"
        case str():
            return f"the text {value[:40]!r}{'…' if len(value) > 40 else ''}"
        case list():
            return "a list"
        case dict():
            return "a map"
