"""What a run folder tells of a run beside its trials' records: who the agents were, and where its files are.

Refuses to know traces and verdicts.
"""

from collections.abc import Mapping
from pathlib import Path

from harness.checked import CheckError, read_object
from harness.roster import Roster, read_roster
from harness.runfolder import MANIFEST, TrialFolder
from harness.tracesource import TraceSourceError, find_source
from proxy.spans import JSON


def roster_of(run: Path, scenario_id: str) -> Roster | None:
    """The roster of a scenario's agents in a run folder; None where they were not of our making, or nobody knows."""
    try:
        match read_object(run / MANIFEST, needed=False):
            case {"scenarios": dict(scenarios)}:
                made_of = scenarios.get(scenario_id)
            case _:
                return None
    except CheckError:
        return None
    match made_of:
        case {"agent": {"roster": said}}:
            return read_roster(said)
        case _:
            return None


def trial_of(path: Path) -> TrialFolder | None:
    """The trial of a run folder that a trace, or its spans, stand in; None where they stand in none."""
    try:
        source = find_source(path, None, None)
    except TraceSourceError:
        return None
    trials = [TrialFolder(place) for place in (source.path.resolve(), *source.path.resolve().parents[:2])]
    return next((trial for trial in trials if trial.verdict.is_file()), None)


def file_of(manifest: Mapping[str, JSON], name: str) -> Path:
    """A file of the run by its name, which is meant from the folder where the run was started, unless it is here."""
    options = manifest.get("options")
    folder = options.get("folder") if isinstance(options, dict) else None
    here = Path(name)
    return here if here.exists() or not isinstance(folder, str) else Path(folder) / name
