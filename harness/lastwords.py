"""What an agent program said on stderr at its end, for a trial that it may explain.

Refuses to know how it is shown.
"""

import os
from pathlib import Path

from harness.results import RunResult, TrialResult

LOOKED_AT = 64 * 1024
"""Bytes of the end of agent.err in which the last line is looked for."""
SHOWN = 300
"""Characters of a line that are shown."""


def last_words(run: RunResult, folder: Path) -> dict[tuple[str, int], str]:
    """For each trial of a program that came to a bad end, or in which something could not be told: where its stderr is.

    With the last line of it that has a letter or a digit in it. The files of a run folder have no secrets.
    """
    found = {}
    for trial in run.trials:
        if trial.folder is None or not _may_explain(trial):
            continue
        file = folder / trial.folder / "agent.err"
        line = _last_line(file)
        if line is not None:
            found[trial.scenario, trial.trial] = f"{file} ends in: {line}"
    return found


def _may_explain(trial: TrialResult) -> bool:
    findings = trial.verdict.findings
    unknown = trial.verdict.status != "completed" or any(finding.result == "not_run" for finding in findings)
    return trial.kind == "real" and trial.verdict.result != "pass" and unknown


def _last_line(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - LOOKED_AT))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return None
    # Python draws a frame around the exceptions of a group.
    lines = [line.strip(" \t|") for line in text.splitlines() if any(map(str.isalnum, line))]
    return lines[-1][:SHOWN] if lines else None
