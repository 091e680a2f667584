"""What a run folder tells of a run beside its trials' records: who the agents were, and where its files are.

Refuses to know traces and verdicts.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from harness.checked import CheckError, read_object
from harness.judge import EVIDENCE, TAMPERED
from harness.results import STATUSES
from harness.roster import Roster, read_roster
from harness.runfolder import MANIFEST, TrialFolder
from harness.secretcheck import unchanged
from harness.tracesource import TraceSourceError, find_source
from harness.verdict import Status
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


def environment_of(trial: TrialFolder | None) -> tuple[Mapping[str, str], list[str]]:
    """Our environment without the secrets that are not what they were in the trial, and the names of those."""
    return (os.environ, []) if trial is None else unchanged(os.environ, read_object(trial.secrets, needed=False))


def canaries_of(trial: TrialFolder | None) -> dict[str, str]:
    """The canaries that the trial's seeds planted, by name."""
    told = {} if trial is None else read_object(trial.canaries, needed=False)
    return {name: text for name, text in told.items() if isinstance(text, str)}


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


def check_named(folder: Path, named: Mapping[str, JSON], report: Mapping[str, JSON]) -> None:
    """Raises CheckError where there are trials of a scenario that the manifest does not name: they would be unseen."""
    left = {path.parent.parent.name for path in folder.glob("*/*/verdict.json")}
    unnamed = sorted((left | {name for name, _ in verdicts_of(report)}) - named.keys())
    if unnamed:
        raise CheckError(f"{folder}: manifest.json does not name {', '.join(unnamed)}, of which the run has trials")


def trials_of(folder: Path, report: Mapping[str, JSON], scenario: str) -> list[int]:
    """The trials that have a folder or a result, in order."""
    found = {int(place.name) for place in (folder / scenario).glob("*") if place.name.isdigit()}
    return sorted(found | {trial for name, trial in verdicts_of(report) if name == scenario})


def verdicts_of(report: Mapping[str, JSON]) -> Mapping[tuple[str, int], Mapping[str, JSON]]:
    """What a report says of each trial, by scenario and number."""
    found: dict[tuple[str, int], Mapping[str, JSON]] = {}
    scenarios = report.get("scenarios", [])
    for scenario in scenarios if isinstance(scenarios, list) else []:
        trials = scenario.get("trials") if isinstance(scenario, dict) else None
        for trial in trials if isinstance(trials, list) else []:
            if isinstance(trial, dict) and isinstance(number := trial.get("trial"), int):
                found[str(trial.get("scenario")), number] = trial
    return found


def damage_of(told: Mapping[str, JSON]) -> list[str]:
    """What was found to be damaged of a trial's evidence while the agent ran."""
    findings = told.get("findings")
    ours = [one for one in findings if isinstance(one, dict)] if isinstance(findings, list) else []
    reasons = [str(one.get("reason")) for one in ours if one.get("id") == EVIDENCE and one.get("result") == "fail"]
    return [reason.removeprefix(TAMPERED) for reason in reasons if reason.startswith(TAMPERED)]


def status_of(said: JSON) -> Status:
    """How a trial ended, by what its verdict says."""
    # A trial of a run that was killed left no verdict.
    return STATUSES[said] if isinstance(said, str) and said in STATUSES else "cancelled"
