"""A map of a file being read field by field: what is wrong is collected, so that a person sees all of it at once.

Refuses to know what the fields mean.
"""

from collections.abc import Callable, Mapping, Sequence

from proxy.problem import Path, Problem, describe, field_name
from proxy.spans import JSON


class FieldReading:
    """One file, or a part of one: `where` is its name, `line` gives the line of a path, `prefix` leads to the part."""

    def __init__(self, where: str, line: Callable[[Path], int | None], prefix: Path) -> None:
        self.where, self.line, self.prefix = where, line, prefix
        self.problems: list[Problem] = []

    def wrong(self, path: Path, message: str) -> None:
        """Note what is wrong with the field at `path`."""
        whole = (*self.prefix, *path)
        self.problems.append(Problem(self.where, self.line(whole), field_name(whole), message))

    def known(self, path: Path, data: Mapping[str, JSON], keys: Sequence[str]) -> None:
        """Note every field of the map at `path` that is none of `keys`."""
        for key in data:
            if key not in keys:
                self.wrong((*path, key), f"unknown field; here may stand {', '.join(keys)}")

    def choice(self, path: Path, data: Mapping[str, JSON], default: str, choices: Sequence[str]) -> str:
        """The word of the field at `path` in its map `data`, `default` where it is absent or wrong."""
        value = data.get(str(path[-1]), default)
        if isinstance(value, str) and value in choices:
            return value
        self.wrong(path, f"expected {' or '.join(choices)}, not {describe(value)}")
        return default
