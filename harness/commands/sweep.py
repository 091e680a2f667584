"""`wiretrap sweep FILE`: every agent on every task, so many times, and the tables that compare them.

Refuses to know how a trial is run and what is judged.
"""

import os
import secrets
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Literal

import click

from harness.commands.judging import absolute, judge_option, opened
from harness.commands.trialoptions import trial_options
from harness.hiding import hide_last_words
from harness.report.swept import as_markdown, as_text
from harness.runfolder import RunFolderError
from harness.runfolder import as_text as as_json_text
from harness.running import Going, ReportError
from harness.runsecrets import hiding_for
from harness.sweepfile import load_sweep
from harness.sweeping import run_sweep
from proxy.problem import ProblemError
from proxy.visible import visible


@click.command("sweep", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@trial_options
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="RUN_FOLDER",
    help="Go on with a sweep of the file that was killed, cancelled or stopped by a limit.",
)
@judge_option
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
def command(
    file: Path,
    jobs: int,
    out: Path,
    resume: Path | None,
    judge_spec: str | None,
    form: Literal["text", "markdown", "json"],
) -> None:
    """Let every agent of FILE do every task, and compare them.

    With --resume, trials that have a result keep it, but for those whose scenario, agent or other file has changed. The
    exit code is 0 when every trial has a result, whatever it is, 1 when a limit ended the sweep before, 2 when the
    command or a file is wrong, 3 when no trial was valid, and 130 after Ctrl-C.
    """
    hiding = hiding_for((), os.environ, secrets.token_hex(32))
    hide_last_words(hiding)
    judge = absolute(judge_spec)
    opened(judge)  # what is wrong with it is said before anything runs
    try:
        told, folder = run_sweep(load_sweep(file), Going(jobs, judge=judge), out=out, resume=resume)
    except ProblemError as error:
        for problem in error.problems:
            click.echo(hiding.text(str(problem)), err=True)
        raise SystemExit(2) from error
    except RunFolderError as error:
        raise click.UsageError(visible(str(error))) from error
    except (ReportError, OSError) as error:
        click.echo(visible(f"wiretrap: the sweep could not be finished: {error}"), err=True)
        raise SystemExit(1) from error
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    match form:
        case "json":
            click.echo(hiding.text(as_json_text(told.as_json())), nl=False)
        case "markdown":
            click.echo(hiding.text(as_markdown(told)), nl=False)
        case "text":
            click.echo(hiding.text(as_text(told)), nl=False)
            click.echo(visible(f"Run folder: {folder}"))
    raise SystemExit(told.exit_code)
