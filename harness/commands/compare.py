"""`wiretrap compare BASE NEW`: two runs held against each other, and a gate on what got worse.

Refuses to know how a difference is tested.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import get_args

import click

from harness.comparing import Comparison, Trials, compare
from harness.jsontext import load_json
from harness.places import is_folder, text_of
from harness.repeats import FEW
from harness.results import STATUSES, VALID
from harness.runfolder import newest_run_in
from harness.verdict import Result
from proxy.spans import JSON
from proxy.visible import visible

RESULTS: tuple[Result, ...] = get_args(Result)


class CompareError(ValueError):
    """A run that cannot be compared: which file, and what is wrong with it."""


def read_trials(path: Path) -> Trials:
    """The trials of a run folder or a report.json. Raises CompareError."""
    file = path / "report.json" if is_folder(path) else path
    try:
        value: JSON = load_json(text_of(file))
    except (OSError, ValueError) as error:
        if is_folder(path) and not file.exists() and (run := newest_run_in(path)) is not None:
            raise CompareError(f"{path}: is no run folder; name one in it, such as {run}") from None
        raise CompareError(f"{file}: cannot be read: {error}") from error
    scenarios = value.get("scenarios") if isinstance(value, dict) else None
    if not isinstance(scenarios, list):
        raise CompareError(f"{file}: is no report of a run; name a run folder or its report.json")
    found: dict[tuple[str, int], Result | None] = {}
    for scenario in scenarios:
        trials = scenario.get("trials") if isinstance(scenario, dict) else None
        for trial in trials if isinstance(trials, list) else []:
            match trial:
                case {
                    "scenario": str() as name,
                    "trial": int() as number,
                    "result": str() as said,
                    "status": str() as status,
                    **rest,
                }:
                    result = next((word for word in RESULTS if word == said), None)
                    if result is None or status not in STATUSES:
                        raise CompareError(f"{file}: trial {number} of {name}: {said!r} ({status!r}) is not known")
                    counts = STATUSES[status] in VALID and rest.get("valid") is not False
                    found[name, number] = result if counts else None
                case _:
                    raise CompareError(f"{file}: a trial has scenario, trial, result and status")
    return found


def as_text(told: Comparison) -> str:
    """The comparison for a person, ending in a newline."""
    lines = [f"{_trials(told.pairs)} in both runs, {len(told.unpaired)} in one alone or not valid in both"]
    if told.missing:
        lines.append(f"NEW lacks {_trials(len(told.missing))} that BASE has:")
        for scenario, numbers in groupby(told.missing, key=itemgetter(0)):
            lines.append(f"  {visible(scenario)} trial {', '.join(str(number) for _, number in numbers)}")
    if told.spoilt:
        lines.append(f"{_trials(len(told.spoilt))} of which BASE says something ended as an error in NEW:")
    for change in (*told.spoilt, *told.changes):
        lines.append(f"  {visible(change.scenario)} trial {change.trial}: {change.base} -> {change.new}")
    if told.fresh:
        lines.append(f"{_trials(len(told.fresh))} that NEW alone has:")
        lines += [f"  {visible(one.scenario)} trial {one.trial}: {one.new}" for one in told.fresh]
    if told.difference is not None and told.base_rate is not None and told.new_rate is not None:
        before, after = round(told.base_rate * told.pairs), round(told.new_rate * told.pairs)
        points = f"{told.difference * 100:+.1f} percentage points"
        lines.append(f"passed: {before} -> {after} ({points}); {told.lost} lost, {told.won} won")
    if told.p_value is not None and told.lost + told.won:
        lines.append(f"McNemar's exact test: p = {told.p_value:.4g}")
    if told.interval is not None:
        low, high = told.interval
        rough = f", rough under {FEW} scenarios" if told.scenarios < FEW else ""
        lines.append(f"over scenarios like these, cluster bootstrap 95 %{rough}: [{low:.4g}, {high:.4g}]")
    elif told.pairs and told.difference:
        lines.append(f"over scenarios like these it is not known: {told.why_null}")
    if told.lost and told.verdict == "no difference shown":
        lines.append("`--fail-on fail` fails on every trial that came to fail")
    return "\n".join([*lines, told.verdict]) + "\n"


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def why_failed(told: Comparison, fail_on: Sequence[Result], *, allow_missing: bool) -> list[str]:
    """Why the gate does not hold, in words; none where it does."""
    if not told.pairs:
        return ["no trial is in both runs"]
    found = ["NEW is significantly worse"] if told.verdict == "worse" else []
    for result in dict.fromkeys(fail_on):
        count = sum(change.new == result for change in (*told.spoilt, *told.changes, *told.fresh))
        if count:
            found.append(f"{_trials(count)} came to {result} (--fail-on {result})")
    if told.missing and not allow_missing:
        found.append(f"NEW lacks {_trials(len(told.missing))} that BASE has (--allow-missing lets that be)")
    if told.spoilt and not allow_missing:
        found.append(f"{_trials(len(told.spoilt))} ended as an error in NEW alone (--allow-missing lets that be)")
    return found


@click.command("compare", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("base", type=click.Path(path_type=Path, exists=True), metavar="BASE")
@click.argument("new", type=click.Path(path_type=Path, exists=True), metavar="NEW")
@click.option("--fail-on", multiple=True, type=click.Choice(RESULTS), help="Fail on a trial that came to this result.")
@click.option("--allow-missing", is_flag=True, help="Do not fail on trials that NEW does not have, or has as an error.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(base: Path, new: Path, fail_on: tuple[Result, ...], allow_missing: bool, form: str) -> None:
    """Hold two runs against each other, trial by trial.

    BASE and NEW are run folders or their report.json. The exit code is 1 when NEW is significantly worse, a trial came
    to a result of --fail-on, or NEW lacks a trial that BASE has, or has an infra_error, harness_error or cancelled in
    its place; 2 when a run cannot be read; 3 when no trial is in both.
    """
    try:
        told = compare(read_trials(base), read_trials(new))
    except CompareError as error:
        click.echo(str(error), err=True)
        raise SystemExit(2) from error
    why = why_failed(told, fail_on, allow_missing=allow_missing)
    if form == "json":
        click.echo(json.dumps({**asdict(told), "verdict": told.verdict, "gate": why}, indent=2))
    else:
        click.echo(as_text(told), nl=False)
        click.echo(f"gate: does not hold: {'; '.join(why)}" if why else "gate: holds")
    if not told.pairs:
        raise SystemExit(3)
    raise SystemExit(1 if why else 0)
