"""Judged trials with their traces: put together as a run, and read from the folder of one.

Refuses to know how a trial is judged and shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.jsontext import load_json
from harness.places import text_of
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.runfolder import MANIFEST, TrialFolder, newest_run_in
from harness.written import Written
from proxy.spans import JSON


class CheckError(ValueError):
    """A trace, database or run folder that cannot be judged: which, and what to do."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One judged trial: the scenario (its file, id, title, category, severity and labels), the trace, what was found.

    `trace` is the JSON object of the trace, None where there is none. `trace_path` is None for a trial of a run.
    """

    path: str
    id: str
    title: str
    category: str
    severity: str | None
    result: TrialResult
    trace: Mapping[str, JSON] | None = None
    trace_path: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    written: Written | None = None


def as_run(run_id: str, checked: Sequence[Checked], seconds: float) -> RunResult:
    """The results as those of a run, scenario by scenario."""
    scenarios: dict[str, list[Checked]] = {}
    for one in checked:
        scenarios.setdefault(one.id, []).append(one)
    return RunResult(
        run_id,
        tuple(
            ScenarioResult(
                scenario_id,
                ones[0].title,
                ones[0].category,
                tuple(one.result for one in ones),
                ones[0].labels,
                ones[0].severity,
                ones[0].written,
            )
            for scenario_id, ones in scenarios.items()
        ),
        seconds,
    )


def checked_run(run: RunResult, folder: Path) -> list[Checked]:
    """The trials of a run that has just ended, with the traces in its folder. Raises CheckError."""
    return [
        Checked(
            one.id if one.written is None else one.written.path,
            one.id,
            one.title,
            one.category,
            one.severity,
            trial,
            _trace_in(folder, trial),
        )
        for one in run.scenarios
        for trial in one.trials
    ]


def _trace_in(folder: Path, trial: TrialResult) -> Mapping[str, JSON] | None:
    file = None if trial.folder is None else TrialFolder(folder / trial.folder).trace
    return read_object(file) if file is not None and file.is_file() else None


def read_object(path: Path, *, needed: bool = True) -> Mapping[str, JSON]:
    """The JSON object in a file; an empty one where there is no file and none is needed. Raises CheckError."""
    if not needed and not path.exists():
        return {}
    try:
        value: JSON = load_json(text_of(path))
    except (OSError, ValueError) as error:
        if path.name == MANIFEST and (run := newest_run_in(path.parent)) is not None:
            raise CheckError(f"{path.parent}: is no run folder; name one in it, such as {run}") from None
        raise CheckError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise CheckError(f"{path}: a JSON object is expected")
    return value
