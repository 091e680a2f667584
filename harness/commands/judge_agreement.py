"""`wiretrap judge-agreement LABELS RUN`: hold a judge's opinions against labels by hand.

Refuses to know how opinions are reached, and the formulas.
"""

import json
from pathlib import Path

import click

from harness.agreement import Agreement, agreement
from harness.labels import LabelError, pair_up, read_labels
from harness.repeats import Interval, wilson
from proxy.visible import visible


@click.command("judge-agreement", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("labels", type=click.Path(path_type=Path), metavar="LABELS")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="RUN")
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True)
def command(labels: Path, run: Path, form: str) -> None:
    """Compare the opinions of a run's judge with labels by hand.

    LABELS is a list of {scenario, trial, success}, success 1 or 0, and {assertion} where a trial has several opinions.
    Shown are agreement, Cohen's kappa, both with 95 % intervals, and who differs which way; where the judge failed
    there is nothing to compare, which is counted. The exit code is 0, or 2 when a label does not fit the run.
    """
    try:
        pairs = pair_up(read_labels(labels), run, str(labels))
    except LabelError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(2) from error
    judges = list(dict.fromkeys(opinion.judge for _, opinion in pairs))
    told = agreement([(label.success, opinion.success) for label, opinion in pairs])
    if form == "json":
        click.echo(json.dumps({"judges": judges, "labels": len(pairs), **told.as_json()}, indent=2))
        return
    count = "1 label" if len(pairs) == 1 else f"{len(pairs)} labels"
    click.echo(visible(f"judge {', '.join(judges)}, {count}, {told.failed} judge_failed"))
    click.echo("\n".join(_lines(told)))


def _lines(told: Agreement) -> list[str]:
    number = "null" if told.kappa is None else f"{told.kappa:.3f}"
    share = "null" if told.share is None else f"{told.share:.3f}"
    why = told.as_json()["why_null"]
    interval = wilson(told.agreed, told.pairs)
    return [
        f"agreement {told.agreed}/{told.pairs} = {share}{_interval(interval)}",
        f"Cohen's kappa {number}{_interval(told.kappa_interval)}" + (f" ({why})" if why else ""),
        f"{'':<16}{'judge 1':>8}{'judge 0':>8}",
        f"{'label 1':<16}{told.both_success:>8}{told.label_only:>8}",
        f"{'label 0':<16}{told.judge_only:>8}{told.both_failure:>8}",
    ]


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" (95 %: {interval[0]:.3f} to {interval[1]:.3f})"
