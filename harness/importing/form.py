"""What every format gives: runs by name, each a trace and what can be rebuilt of its servers' databases.

Refuses to know the formats, and where files are written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.evidence import Dump
from harness.trace import Trace
from proxy.spans import JSON


class ImportFormatError(ValueError):
    """A file that is not of the format: which, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Imported:
    """One run. `name` names its files; `databases` are those that can be rebuilt, by server id, as they ended.

    `task` is the scenario that stands beside the run in its file, as that file has it.
    """

    name: str
    trace: Trace
    databases: Mapping[str, Dump] = field(default_factory=dict)
    task: Mapping[str, JSON] | None = None


class Format(Protocol):
    """A format: reads the text of one file. `stem` is its name without ending, `where` is for errors."""

    def __call__(self, text: str, stem: str, where: str) -> Iterator[Imported]:
        """The runs of the file, at least one. Raises ImportFormatError."""
