"""What a run that was not finished was made of, as its manifest says, and whether all of that is still so.

Refuses to know how trials are run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.jsontext import load_json
from harness.looseverdict import rules_of
from harness.runfolder import MANIFEST, RunFolderError, newest_run_in
from harness.selection import Selection
from harness.targets.profiles.known import PROFILES
from proxy.plainfile import open_plain
from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that had begun: what was asked for, and what it was made of. `made_of` is by words of the manifest."""

    selection: Selection
    trials: int | None
    started_at: datetime
    resumed_at: tuple[datetime, ...]
    made_of: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What a manifest says of a run that had begun: the whole of it, when it began, and when it was gone on with."""

    made_of: dict[str, JSON]
    started_at: datetime
    resumed_at: tuple[datetime, ...]


def read_made_of(folder: Path) -> MadeOf:
    """What the run of a folder was made of. Raises RunFolderError."""
    path = folder / MANIFEST
    try:
        with open_plain(path) as file:
            manifest: JSON = load_json(file.read())
    except FileNotFoundError:
        run = newest_run_in(folder)
        what = "start a new run" if run is None else f"name a run folder in it, such as {run}"
        raise RunFolderError(f"{folder} has no {MANIFEST}, so nothing can be resumed; {what}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from error
    made_of = manifest if isinstance(manifest, dict) else {}
    match made_of:
        case {"started_at": str(started), "resumed_at": list(resumed)}:
            pass
        case _:
            raise RunFolderError(f"{path} does not say what was asked for; start a new run")
    try:
        moments = tuple(datetime.fromisoformat(str(moment)) for moment in resumed)
        return MadeOf(made_of, datetime.fromisoformat(started), moments)
    except ValueError as error:
        raise RunFolderError(f"{path}: {error}") from error


def read_begun(folder: Path, command: tuple[str, ...] | None) -> Begun:
    """The run of a folder. `command` are the words of a program, which no manifest has. Raises RunFolderError."""
    path, found = folder / MANIFEST, read_made_of(folder)
    options = found.made_of.get("options")
    match options:
        case {
            "trials": int() | None as trials,
            "paths": list(paths),
            "agent": agent,
            "command": bool(by_command),
            "profile": profile,
        }:
            pass
        case _:
            raise RunFolderError(f"{path} does not say what was asked for; start a new run")
    if by_command and command is None:
        raise RunFolderError(f"{folder}: the agent was a --command, which is not written down; give the same one again")
    if command is not None and not by_command:
        raise RunFolderError(f"{folder}: the agent was no --command; leave that out")
    elsewhere = _option(found.made_of, "folder")
    if (
        isinstance(elsewhere, str)
        and Path(elsewhere) != Path.cwd()
        and not all(Path(str(one)).exists() for one in paths)
    ):
        raise RunFolderError(
            f"{folder}: its files are named from {elsewhere}, where it was started; go on with it there"
        )
    known = next((name for name in PROFILES if name == profile), None)
    selection = Selection(
        tuple(map(str, paths)), agent if isinstance(agent, str) else None, command, known, (), rules_of(found.made_of)
    )
    return Begun(selection, trials, found.started_at, found.resumed_at, found.made_of)


def differences(begun: Begun, now: JSON) -> Iterator[str]:
    """In what the run differs from what it would be made of now (the manifest of that), in words."""
    parts = now if isinstance(now, dict) else {}
    for part in ("versions", "scenarios"):
        yield from _differences(part, begun.made_of.get(part), parts.get(part))
    judges = [_option(one, "judge") for one in (begun.made_of, parts)]
    yield from _differences("options.judge", *judges)


def _option(document: Mapping[str, JSON], name: str) -> JSON:
    options = document.get("options")
    return options.get(name) if isinstance(options, dict) else None


def _differences(name: str, before: JSON, now: JSON) -> Iterator[str]:
    match before, now:
        case dict(), dict():
            for key in dict.fromkeys([*before, *now]):
                yield from _differences(f"{name}.{key}", before.get(key), now.get(key))
        case _ if before != now:
            yield f"{name} is not what it was"
        case _:
            pass
