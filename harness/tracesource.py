"""What a path that a person names holds: span files, or a trace that was made already.

Refuses to know what is done with either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.jsontext import load_json
from harness.places import is_file, is_folder, is_there
from proxy.plainfile import open_plain

LISTED = 20
"""Folders that a listing shows."""


class TraceSourceError(ValueError):
    """A path that leads to no spans, or to those of several trials: which, and what to do.

    `listing` has one line for each thing that could be named instead.
    """

    def __init__(self, message: str, listing: Sequence[str] = ()) -> None:
        self.listing = tuple(listing)
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class SpanPath:
    """A span file, or a folder of them."""

    path: Path


@dataclass(frozen=True, slots=True)
class TracePath:
    """A trace.json, of ours or of another harness."""

    path: Path


def find_source(path: Path, scenario: str | None, trial: int | None) -> SpanPath | TracePath:
    """What `path` holds: a file, a folder of spans, a trial folder, or a run folder.

    Of a run folder `scenario` and `trial` pick the trial. Raises TraceSourceError; for a folder of runs it lists them.
    """
    if not is_there(path):
        raise TraceSourceError(f"{path}: there is no such file or folder")
    if is_file(path):
        if (other := _other_file(path)) is not None:
            raise TraceSourceError(f"{path}: is {other}")
        return TracePath(path) if _is_trace(path) else SpanPath(path)
    if not is_folder(path):
        raise TraceSourceError(f"{path}: is neither a file nor a folder")
    match span_folders(path):
        case [only] if only in (path, path / "spans"):
            return SpanPath(only)
        case []:
            pass
        case folders:
            return SpanPath(_pick(path, [folder.parent for folder in folders], scenario, trial) / "spans")
    runs = runs_in(path)
    if runs:
        more = [f"and {len(runs) - LISTED} more"] if len(runs) > LISTED else []
        raise TraceSourceError(
            f"{path}: holds several folders of spans; name one, as in `wiretrap trace {runs[0]}`; newest first:",
            [*(f"{run}  ({_holding(run)})" for run in runs[:LISTED]), *more],
        )
    raise TraceSourceError(f"{path}: holds no spans; name a span file, a folder of them, a trial or a run folder")


def span_paths(path: Path) -> list[Path]:
    """Every span file, or folder of them, that `path` leads to; of a run folder those of all trials.

    Raises TraceSourceError.
    """
    folders = span_folders(path) if is_folder(path) else []
    if folders:
        return folders
    match find_source(path, None, None):
        case SpanPath(path=found):
            return [found]
        case TracePath():
            raise TraceSourceError(f"{path}: is a trace, which has no spans; name the span files that it was made of")


def span_folders(path: Path) -> list[Path]:
    """The folders of span files of a folder of them, of a trial, or of all trials of a scenario or a run."""
    if _holds_spans(path / "spans"):
        return [path / "spans"]
    if any(path.glob("*.jsonl")):
        return [path]
    found = {folder for pattern in ("*/spans", "*/*/spans") for folder in path.glob(pattern) if _is_trial(folder)}
    return sorted(found, key=lambda folder: (folder.parent.parent.name, len(folder.parent.name), folder.parent.name))


def runs_in(path: Path) -> list[Path]:
    """The folders in `path`, or in its `spans/`, that are run folders or hold span files; newest first."""
    place = path / "spans" if (path / "spans").is_dir() else path
    try:
        found = [folder for folder in place.iterdir() if folder.is_dir() and is_run(folder)]
        return sorted(found, key=lambda folder: (folder.stat().st_mtime_ns, folder.name), reverse=True)
    except OSError:
        return []


def is_run(path: Path) -> bool:
    """Whether a folder is a run folder, a part of one, or holds span files."""
    return (path / "manifest.json").is_file() or bool(span_folders(path))


def _is_trial(spans: Path) -> bool:
    # What begins with a dot was moved aside: an unfinished trial, or what stood in the place of one.
    return not spans.parent.name.startswith(".") and _holds_spans(spans)


def _holds_spans(folder: Path) -> bool:
    """Whether a folder called `spans` is one of span files, those that are still to come included."""
    return folder.is_dir() and (any(folder.glob("*.jsonl")) or not any(folder.iterdir()))


def _holding(run: Path) -> str:
    folders = span_folders(run)
    if folders == [run]:
        servers = sorted({file.name.rsplit(".", 3)[0] for file in run.glob("*.jsonl")})
        return f"servers: {', '.join(servers)}"
    trials = [f"{folder.parent.parent.name}/{folder.parent.name}" for folder in folders]
    return f"trials: {', '.join(trials[:3])}{' …' if len(trials) > 3 else ''}" if trials else "no trial yet"


def _other_file(path: Path) -> str | None:
    """What a file of a run folder is that holds neither spans nor a trace, and where those are."""
    trial, run = path.parent, path.parent
    match path.name:
        case "verdict.json" | "agent.out" | "agent.err" if (trial / "trace.json").is_file():
            what = "a verdict" if path.name == "verdict.json" else "what an agent said"
            return f"{what}; the trace that it belongs to is {trial / 'trace.json'}"
        case "manifest.json" | "results.ndjson" | "report.json" | "report.md" | "report.sarif" | "junit.xml" if is_run(
            run
        ):
            return f"a report of a run; name the run's folder, {run}"
        case name if trial.name == "state" and name.endswith((".before.jsonl", ".after.jsonl", ".journal.jsonl")):
            return f"a dump of a database; the trace of its trial is {trial.parent / 'trace.json'}"
        case _:
            return None


def _pick(path: Path, trials: list[Path], scenario: str | None, trial: int | None) -> Path:
    """The one trial folder, `<scenario>/<trial>`, that the choice leaves."""
    left = [
        folder
        for folder in trials
        if (scenario is None or folder.parent.name == scenario) and (trial is None or folder.name == str(trial))
    ]
    if len(left) == 1:
        return left[0]
    names = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in left or trials)
    if left:
        raise TraceSourceError(f"{path}: holds several trials; choose one with --scenario and --trial: {names}")
    raise TraceSourceError(f"{path}: holds no such trial; there are: {names}")


def _is_trace(path: Path) -> bool:
    """Whether a file is a trace; spans are one document a line, or have resourceSpans at the top."""
    if path.suffix == ".jsonl":
        return False
    try:
        with open_plain(path, follow=True) as file:
            if b'"resourceSpans"' in file.readline(4096):
                return False
            file.seek(0)
            value = load_json(file.read())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not value.keys() & {"resourceSpans", "result", "resourceLogs", "resourceMetrics"}
