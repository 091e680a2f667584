"""`wiretrap rejudge RUN`: judge the trials of a run folder again, by what they left.

Refuses to know what is judged and how.
"""

import time
from pathlib import Path

import click

from harness.checking import rejudge_run
from harness.commands.check import guarded, show
from harness.commands.gating import gate_options
from harness.commands.judging import judge_option, opened
from harness.gate import Gate
from harness.report.documents import FORMATS, Format
from harness.verdict import Result
from proxy.visible import visible


@click.command("rejudge", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="RUN")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SCENARIO]...")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@judge_option
@gate_options
def command(
    run: Path,
    paths: tuple[Path, ...],
    form: Format,
    judge_spec: str | None,
    min_pass_rate: float | None,
    fail_on: tuple[Result, ...],
) -> None:
    """Judge the trials of a run folder again, and show the verdicts; the folder stays as it is.

    The scenarios are those that the run's manifest names, as they are now, or those under the SCENARIOs given. Exit
    codes are those of a run. Without --judge a judge's opinions are those of the run.
    """
    began = time.monotonic()

    def note(text: str) -> None:
        click.echo(f"wiretrap rejudge: {visible(text)}", err=True)

    judge = opened(judge_spec)
    checked = guarded(lambda: list(rejudge_run(run, paths, note, judge)))
    gate = Gate(min_pass_rate, frozenset(fail_on))
    raise SystemExit(show(checked, run.name, time.monotonic() - began, form, gate, suite=True))
