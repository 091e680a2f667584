"""Where a run's files lie, and how they are written: folders 0700, files 0600, a document whole or not at all.

Refuses to know what stands in them.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii as quote
from pathlib import Path

from proxy.spans import JSON

FOLDER_MODE = 0o700
FILE_MODE = 0o600
MANIFEST = "manifest.json"
"""The file that says what a run is made of."""
RESULTS = "results.ndjson"
"""The file that has each result as it came."""
RESERVED = frozenset({".", "..", MANIFEST, RESULTS, "report.json", "report.md", "report.sarif", "junit.xml"})
"""Names in a run folder that are no scenario's."""


class RunFolderError(ValueError):
    """A folder that cannot be made or a name that cannot be used in one."""


def new_run_id(now: datetime | None = None) -> str:
    """UTC time and four random hex digits, as `20261130T114352Z-9f3c`."""
    return f"{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def newest_run_in(folder: Path) -> Path | None:
    """The newest of the run folders in a folder, for who named that in place of one; None where there is none."""
    return max((file.parent for file in folder.glob(f"*/{MANIFEST}")), default=None)


def make_folder(path: Path) -> Path:
    """Make a private folder; what lies above it is made too, with the modes that the system gives."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=FOLDER_MODE)
    path.chmod(FOLDER_MODE)
    return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def write_new(path: Path, text: str) -> Path:
    """Write a new private file in UTF-8; lone surrogates become the bytes that they stand for."""
    return write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> Path:
    """The same for a text in pieces, which are never all in memory. Where one cannot be made there is no file."""
    with open(path, "x", encoding="utf-8", errors="surrogateescape", newline="", opener=_private) as file:
        try:
            file.writelines(pieces)
        except ValueError:
            path.unlink()
            raise
    return path


def replace(path: Path, text: str) -> Path:
    """Write a private file so that a reader sees the old one or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_new(draft, text)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return path


def make_way(path: Path) -> None:
    """Move what stands at a place of ours aside, under a name that begins with a dot; nothing where it is free."""
    if os.path.lexists(path):
        path.rename(path.with_name(f".{path.name}.{secrets.token_hex(4)}"))


def as_text(document: JSON) -> str:
    """A JSON document for people and programs; characters beyond ASCII are escaped, since some may be no characters."""
    try:
        return _indented(document, "\n") + "\n"
    except (RecursionError, TypeError):
        return json.dumps(document, indent=2) + "\n"


def _indented(value: JSON, line: str) -> str:
    """What the standard library writes with `indent=2`, for which it takes its slow way; `line` begins a line."""
    inner = f"{line}  "
    match value:
        case dict() if value:
            members = [f"{quote(key)}: {_indented(item, inner)}" for key, item in value.items()]
            return f"{{{inner}{f',{inner}'.join(members)}{line}}}"
        case list() | tuple() if value:
            items = [_indented(item, inner) for item in value]
            return f"[{inner}{f',{inner}'.join(items)}{line}]"
        case str():
            return quote(value)
        case _:
            return json.dumps(value)


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """The files of one trial."""

    path: Path

    @property
    def spans(self) -> Path:
        """The folder of the span files, the record."""
        return self.path / "spans"

    @property
    def trace(self) -> Path:
        """The trace made of the spans."""
        return self.path / "trace.json"

    @property
    def verdict(self) -> Path:
        """The trial's verdict and findings."""
        return self.path / "verdict.json"

    @property
    def output(self) -> Path:
        """All of the agent's standard output."""
        return self.path / "agent.out"

    @property
    def errors(self) -> Path:
        """All of the agent's standard error, or what the servers said under a scripted agent."""
        return self.path / "agent.err"

    @property
    def canaries(self) -> Path:
        """The canaries that the seeds planted, by name; only where there are any."""
        return self.path / "canaries.json"

    @property
    def secrets(self) -> Path:
        """How to tell whether variables have their secrets still; only where the scenario names some."""
        return self.path / "secrets.json"

    @property
    def reported(self) -> Path:
        """What a target said of its own messages, calls and events; only where it said something."""
        return self.path / "reported.json"

    def state(self, server: str, moment: str) -> Path:
        """The dump of a server's database; `moment` is before, after or journal."""
        return self.path / "state" / f"{server}.{moment}.jsonl"


def make_trial_folder(run: Path, scenario: str, trial: int) -> TrialFolder:
    """Make `<scenario>/<trial>` with its folders and empty agent files. Raises FileExistsError where it is there."""
    above = run / scenario
    if not above.is_dir():
        make_folder(above)
    folder = TrialFolder(make_folder(above / str(trial)))
    make_folder(folder.spans)
    make_folder(folder.path / "state")
    write_new(folder.output, "")
    write_new(folder.errors, "")
    return folder


def make_run_folder(out: Path, run_id: Callable[[], str] = new_run_id) -> Path:
    """Make a new run folder below `out`; its name is the run id. Raises RunFolderError."""
    try:
        while True:
            try:
                return make_folder(out / run_id())
            except FileExistsError:
                if not out.is_dir():
                    raise
    except OSError as error:
        raise RunFolderError(
            f"cannot make a run folder in {out}: {error.strerror}; choose another with --out"
        ) from error
