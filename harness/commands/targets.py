"""`wiretrap targets [RUN...]`: what can be seen of each kind of target, or what was seen of those of runs.

Refuses to know how anything is observed.
"""

import json
from pathlib import Path
from typing import Literal

import click
from pydantic import TypeAdapter, ValidationError

from harness.observability import Measure
from harness.report.seen import Matrix, matrix, matrix_as_json, matrix_lines, reasons
from harness.targets.sight import SIGHTS
from proxy.spans import JSON

_MEASURES: TypeAdapter[dict[str, Measure]] = TypeAdapter(dict[str, Measure])


class ReportError(ValueError):
    """A run whose report cannot be read: which, and why."""


def _of_run(folder: Path) -> list[tuple[str, dict[str, Measure]]]:
    """The target and measures of each trial of a run's report.json. Raises ReportError."""
    file = folder / "report.json"
    try:
        report: JSON = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"{file}: cannot be read: {error}") from error
    scenarios = report.get("scenarios") if isinstance(report, dict) else None
    if not isinstance(scenarios, list):
        raise ReportError(f"{file}: is no report of a run; name a run folder")
    found: list[tuple[str, dict[str, Measure]]] = []
    for scenario in scenarios:
        trials = scenario.get("trials") if isinstance(scenario, dict) else None
        for trial in trials if isinstance(trials, list) else []:
            match trial:
                case {"target": str(target), "measures": dict(measures)}:
                    try:
                        found.append((target, _MEASURES.validate_python(measures)))
                    except ValidationError as error:
                        raise ReportError(f"{file}: a trial's measures are none: {error.errors()[0]['msg']}") from error
                case _:
                    raise ReportError(f"{file}: says nothing of targets; `wiretrap rejudge {folder}` does")
    return found


@click.command("targets", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="[RUN]...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(runs: tuple[Path, ...], form: Literal["text", "json"]) -> None:
    """Show what can be seen of each kind of target: a row for each, a column for each measure, and why.

    With run folders it is what was seen in their trials. `observed` is what we saw ourselves, `derived` what is made of
    what the target or a file says, and `not observable` what nobody knows; that is null in a report, and never 0. The
    exit code is 2 where a report cannot be read.
    """
    try:
        found: Matrix = (
            matrix(pair for run in runs for pair in _of_run(run))
            if runs
            else matrix((sight.name, sight.measures()) for sight in SIGHTS)
        )
    except ReportError as error:
        raise click.UsageError(str(error)) from error
    if form == "json":
        click.echo(json.dumps(matrix_as_json(found), indent=2))
        return
    for line in (*matrix_lines(found), "", *reasons(found)):
        click.echo(line)
