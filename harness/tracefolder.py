"""Which file of a folder of traces is whose: one has its scenario's id, or the name that the OWASP harness gives it.

Refuses to know what is in a trace.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_ENDINGS = (".json", ".trace.json")
_EXPECTED = ("_pass", "_fail")
"""What stands behind the name of a trace of the OWASP harness: how the scenario is expected to end."""


class Whose(NamedTuple):
    """What of a scenario its trace may be named by; `path` is its file."""

    id: str
    category: str
    path: Path


class Located(NamedTuple):
    """The trace of a scenario, None where there is none. `note`: what a person should know of the choice, or ""."""

    path: Path | None
    note: str


def locate_traces(folder: Path, scenarios: Sequence[Whose]) -> Mapping[str, Located]:
    """The trace of each scenario, by its id: `ID.json`, `ID.trace.json`, or else by the names of the OWASP harness.

    Those are `CATEGORY/NAME_pass.json` and, as `wiretrap import` writes them, `CATEGORY.NAME_pass.trace.json`, where
    NAME is the id without the category, or the name of the scenario's file. Such a trace is taken when no other one
    may be the scenario's, and the trace no other scenario's.
    """
    exact = {whose.id: _first(folder / f"{whose.id}{ending}" for ending in _ENDINGS) for whose in scenarios}
    alike = {whose.id: _alike(folder, whose) for whose in scenarios if exact[whose.id] is None}
    claims = Counter(path for paths in alike.values() for path in paths)
    return {
        name: Located(path, "") if path is not None else _chosen(name, alike[name], claims)
        for name, path in exact.items()
    }


def _chosen(name: str, paths: Sequence[Path], claims: Mapping[Path, int]) -> Located:
    match paths:
        case []:
            return Located(None, "")
        case [path] if claims[path] == 1:
            return Located(path, f"{name}: judged by {path}, which has its category and name")
        case [path]:
            return Located(None, f"{path} may be that of several scenarios; name it {name}.json")
        case _:
            said = ", ".join(map(str, paths))
            return Located(None, f"it may be any of {said}; name one of them {name}.json, or give it with --trace")


def _first(paths: Iterable[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _alike(folder: Path, whose: Whose) -> list[Path]:
    """The traces that have the category and the name of a scenario."""
    if not whose.category:
        return []
    heads = [f"{whose.category}/", f"{whose.category}."]
    if folder.absolute().name == whose.category:
        heads.append("")
    names = dict.fromkeys((whose.id.removeprefix(f"{whose.category}."), whose.path.stem))
    places = [
        folder / f"{head}{name}{word}{ending}"
        for name in names
        for ending in _ENDINGS
        for head in heads
        for word in (("", *_EXPECTED) if head.endswith("/") else _EXPECTED)
    ]
    return [place for place in dict.fromkeys(places) if place.is_file()]
