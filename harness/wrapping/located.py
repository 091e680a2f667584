"""A configuration's text with the place of each key and value in it, so that an edit leaves all else as it is.

Refuses to know what the keys mean; how a format is read is for its own module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from proxy.jsonedit import Edit
from proxy.problem import Path
from proxy.spans import JSON


class ConfigError(ValueError):
    """A configuration that cannot be read; the message has the line and what is wrong there."""


class Span(NamedTuple):
    """A part of a text, by its first character and the one behind its last."""

    start: int
    end: int


Insert: TypeAlias = Callable[[str, str], Edit]
"""Given a key and a value's text, the edit that puts them behind a member as the next one."""


@dataclass(slots=True)
class Located:
    """`data` is what the text says. `keys` has every place of a key, since TOML may write one often; `values` those of
    the values, items of lists too. `inserts` gives for a member the edit that adds another behind it; `twice` has the
    paths whose key is there more than once. `quote` writes a text as a value, `quote_key` one as a key.
    """

    text: str
    quote: Callable[[str], str]
    quote_key: Callable[[str], str]
    data: JSON = None
    keys: dict[Path, list[Span]] = field(default_factory=dict)
    values: dict[Path, Span] = field(default_factory=dict)
    inserts: dict[Path, Insert] = field(default_factory=dict)
    twice: list[Path] = field(default_factory=list)

    def at(self, path: Path) -> JSON:
        """The value at a path, None where there is none."""
        found = self.data
        for part in path:
            match found:
                case dict() if isinstance(part, str):
                    found = found.get(part)
                case list() if isinstance(part, int) and part < len(found):
                    found = found[part]
                case _:
                    return None
        return found

    def source(self, path: Path) -> str:
        """The text of the value at a path."""
        span = self.values[path]
        return self.text[span.start : span.end]

    def renamed(self, path: Path, name: str) -> list[Edit]:
        """The edits that give a key another name, in all its places."""
        return [Edit(span.start, span.end, self.quote_key(name)) for span in self.keys[path]]

    def replaced(self, path: Path, text: str) -> Edit:
        """The edit that puts another value's text in the place of a value."""
        span = self.values[path]
        return Edit(span.start, span.end, text)

    def before_items(self, path: Path, items: Sequence[str]) -> Edit:
        """The edit that puts the texts of more items before those of a list, the layout of its first one kept."""
        joined = ", ".join(items)
        opened = self.values[path].start + 1
        first = self.values.get((*path, 0))
        if first is None:
            return Edit(opened, opened, joined)
        gap = self.text[opened : first.start]
        return Edit(first.start, first.start, f"{joined},{gap if gap.strip() == '' and gap else ' '}")

    def listed(self, items: Sequence[str]) -> str:
        """The text of a list of texts."""
        return f"[{', '.join(map(self.quote, items))}]"


def line_of(text: str, place: int) -> int:
    """The line, from 1, of a character."""
    return text.count("\n", 0, place) + 1


def without(data: Mapping[str, JSON], names: Sequence[str]) -> dict[str, JSON]:
    """The map without some keys."""
    return {key: value for key, value in data.items() if key not in names}
