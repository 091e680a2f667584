"""What a path that a person names holds: span files, or a trace that was made already.

Refuses to know what is done with either.
"""

import json
from dataclasses import dataclass
from pathlib import Path


class TraceSourceError(ValueError):
    """A path that leads to no spans, or to those of several trials: which, and what to do."""


@dataclass(frozen=True, slots=True)
class SpanPath:
    """A span file, or a folder of them."""

    path: Path


@dataclass(frozen=True, slots=True)
class TracePath:
    """A trace.json, of ours or of another harness."""

    path: Path


def find_source(path: Path, scenario: str | None, trial: int | None, *, waiting: bool = False) -> SpanPath | TracePath:
    """What `path` holds: a file, a folder of spans, a trial folder, or a run folder.

    Of a run folder `scenario` and `trial` pick the trial. `waiting`: an empty folder is one whose spans are still to
    come. Raises TraceSourceError.
    """
    if not path.exists():
        raise TraceSourceError(f"{path}: there is no such file or folder")
    if path.is_file():
        return TracePath(path) if _is_trace(path) else SpanPath(path)
    if not path.is_dir():
        raise TraceSourceError(f"{path}: is neither a file nor a folder")
    if (path / "spans").is_dir():
        return SpanPath(path / "spans")
    if any(path.glob("*.jsonl")):
        return SpanPath(path)
    trials = _trials(path)
    if trials:
        return SpanPath(_pick(path, trials, scenario, trial) / "spans")
    if waiting and not any(path.iterdir()):
        return SpanPath(path)
    raise TraceSourceError(f"{path}: holds no spans; name a span file, a folder of them, a trial or a run folder")


def span_paths(path: Path) -> list[Path]:
    """Every span file, or folder of them, that `path` leads to; of a run folder those of all trials.

    Raises TraceSourceError.
    """
    if path.is_dir() and not (path / "spans").is_dir() and not any(path.glob("*.jsonl")):
        trials = _trials(path)
        if trials:
            return [trial / "spans" for trial in trials]
    match find_source(path, None, None):
        case SpanPath(path=found):
            return [found]
        case TracePath():
            raise TraceSourceError(f"{path}: is a trace, which has no spans; name the span files that it was made of")


def _trials(path: Path) -> list[Path]:
    """The trial folders in a run folder or in a scenario's folder of one."""
    found = {folder.parent for pattern in ("*/spans", "*/*/spans") for folder in path.glob(pattern) if folder.is_dir()}
    return sorted(found, key=lambda folder: (folder.parent.name, len(folder.name), folder.name))


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
        with path.open("rb") as file:
            if b'"resourceSpans"' in file.readline(4096):
                return False
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not value.keys() & {"resourceSpans", "result", "resourceLogs", "resourceMetrics"}
