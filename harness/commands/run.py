"""`wiretrap run PATH…`: run scenarios, judge them, write a run folder and show the table.

Refuses to know how a trial is run and what is judged.
"""

import os
import secrets
import shlex
import shutil
import sys
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import get_args

import click
from click.core import ParameterSource

from harness.agentfile import unknown_placeholders
from harness.checked import CheckError, checked_run
from harness.commands.gating import gate_options, say_gate
from harness.commands.judging import absolute, judge_option, opened
from harness.commands.trialoptions import trial_options
from harness.gate import Gate
from harness.hiding import Hiding, hide_last_words
from harness.lastwords import last_words
from harness.looseverdict import Rules
from harness.report.documents import FORMATS, Format, as_document
from harness.report.seen import matrix_lines
from harness.report.table import Style, as_table
from harness.runfolder import RunFolderError
from harness.running import Going, ReportError, resume_run, run_selected
from harness.runsecrets import hiding_for
from harness.scenariofile import MOST_TRIALS
from harness.selection import Selection, load_selection
from harness.targets.profiles.known import PROFILES, ProfileName
from harness.verdict import Result
from proxy.endpoint import EndpointError, parse_endpoint
from proxy.problem import ProblemError
from proxy.visible import visible

_DEFAULT = ParameterSource.DEFAULT


def _words(program: str | None, profile: ProfileName | None, hiding: Hiding) -> tuple[str, ...] | None:
    """The words of --command, or of the profile's own program; what is wrong with them is said without secrets."""
    option = "--command" if program is not None else f"--profile {profile}"
    if program is None and profile is not None:
        program = PROFILES[profile].program
    if program is None:
        return None
    try:
        words = tuple(shlex.split(program))
    except ValueError as error:
        # Not the command itself: quoted once more, a secret in it would not be found.
        raise click.UsageError(f"{option} cannot be taken apart into words: {error}") from error
    if not words:
        raise click.UsageError("--command names no program")
    if shutil.which(words[0]) is None:
        raise click.UsageError(f"{option}: the program '{visible(hiding.text(words[0]))}' is not found")
    for message in unknown_placeholders(words):
        raise click.UsageError(f"--command: {hiding.text(message)}")
    return words


def _selection(
    paths: tuple[str, ...], agent: str | None, program: str | None, profile: ProfileName | None, hiding: Hiding
) -> Selection:
    if agent is not None and (program is not None or profile is not None):
        raise click.UsageError("give --agent, or --command and --profile, not both")
    if not paths:
        raise click.UsageError("name a scenario or a folder of them")
    words = _words(program, profile, hiding)
    return Selection(paths, agent, None if program is None else words, profile)


def _only_with_resume(paths: tuple[str, ...], context: click.Context) -> None:
    """Raise UsageError for what a run that is gone on with has said already."""
    given = [
        f"--{name}"
        for name in ("agent", "profile", "trials", "out")
        if context.get_parameter_source(name) is not _DEFAULT
    ]
    for name in (["PATH"] if paths else []) + given:
        raise click.UsageError(f"--resume takes no {name}: the run's manifest says what it is made of")


def terminal_style() -> Style:
    """Width and colour of standard output, both only on a terminal; NO_COLOR is heeded (no-color.org)."""
    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR")
    return Style(shutil.get_terminal_size().columns if terminal else None, colour)


@click.command("run", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--agent",
    metavar="FILE",
    help="An agent file (steps, a program, or a target: docs/targets.md), in place of the scenarios' own.",
)
@click.option(
    "--command",
    "program",
    metavar="'PROGRAM ARG...'",
    help="A program as the agent, run without a shell; {prompt}, {prompt_file} and {mcp_config} are filled in.",
)
@click.option(
    "--profile",
    type=click.Choice(tuple(PROFILES)),
    help="The kind of agent that the program is; without --command, the kind's own program.",
)
@click.option(
    "--trials", type=click.IntRange(1, MOST_TRIALS), metavar="N", help="Trials of each scenario [default: its own]."
)
@trial_options
@click.option(
    "--otlp", metavar="URL", help="Send a copy of every span on as it is written, as `wiretrap proxy stdio` does."
)
@judge_option
@click.option(
    "--semantics",
    type=click.Choice(get_args(Rules)),
    default="wiretrap",
    show_default=True,
    help="By whose rules the trials are judged.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--keep", is_flag=True, help="Keep each trial's databases and MCP configuration, without secrets.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="RUN_FOLDER",
    help="Go on with a run that was killed or cancelled, in place of PATH.",
)
@gate_options
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[str, ...],
    agent: str | None,
    program: str | None,
    profile: ProfileName | None,
    trials: int | None,
    jobs: int,
    out: Path,
    otlp: str | None,
    judge_spec: str | None,
    semantics: Rules,
    form: Format,
    keep: bool,
    resume: Path | None,
    min_pass_rate: float | None,
    fail_on: tuple[Result, ...],
) -> None:
    """Run scenarios, judge them, write a run folder, and show the table.

    PATH is a scenario, or a folder with all scenarios under it. With --resume the run's own manifest says what it is
    made of; a trial that has a result is not done again. The exit code is 0 when everything passes (or the gate
    of --min-pass-rate and --fail-on holds), 1 when not, 2 when the command or a scenario is wrong, 3 when no trial was
    valid, and 130 after Ctrl-C.
    """
    if resume is not None:
        _only_with_resume(tuple(paths), context)
    gate = Gate(min_pass_rate, frozenset(fail_on))
    # What scenarios name is not known before they are read; the environment is.
    hiding = hiding_for((), os.environ, secrets.token_hex(32))
    hide_last_words(hiding)
    try:
        if otlp is not None:
            parse_endpoint(otlp)
    except EndpointError as error:
        raise click.UsageError(str(error)) from error
    if judge_spec is not None and semantics != "wiretrap":
        raise click.UsageError(f"--semantics {semantics} asks no judge")
    judge = absolute(judge_spec)
    opened(judge)  # what is wrong with it is said before anything runs
    try:
        if resume is not None:
            run, folder = resume_run(resume, _words(program, None, hiding), Going(jobs, keep, gate, otlp, judge))
        else:
            selection = replace(_selection(tuple(paths), agent, program, profile, hiding), semantics=semantics)
            selected = load_selection(selection)
            scenarios, agents, key = selected.by_id.values(), selected.agents.values(), secrets.token_hex(32)
            hide_last_words(hiding_for(scenarios, os.environ, key, agents, otlp))
            for note in dict.fromkeys(note for scenario in selected.by_id.values() for note in scenario.notes):
                click.echo(hiding.text(str(note)), err=True)
            run, folder = run_selected(
                selected, selection, trials=trials, jobs=jobs, out=out, keep=keep, gate=gate, otlp=otlp, judge=judge
            )
    except ProblemError as error:
        for problem in error.problems:
            click.echo(hiding.text(str(problem)), err=True)
        raise SystemExit(2) from error
    except RunFolderError as error:
        raise click.UsageError(visible(hiding.text(str(error)))) from error
    except ReportError as error:
        click.echo(visible(f"wiretrap: {error}"), err=True)
        click.echo(as_table(error.run, terminal_style()), nl=False)
        raise SystemExit(error.run.exit_code or 1) from error
    except OSError as error:
        click.echo(visible(f"wiretrap: the run could not be finished: {error}"), err=True)
        raise SystemExit(1) from error
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that knows few characters still gets the whole table.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        told = as_document(
            form,
            run,
            lambda: checked_run(run, folder),
            suite=True,
            style=terminal_style(),
            said=last_words(run, folder),
        )
    except CheckError as error:
        click.echo(visible(f"wiretrap: {error}"), err=True)
        raise SystemExit(run.exit_code or 1) from error
    click.echo(told, nl=False)
    # Behind a document nothing may stand.
    click.echo(visible(f"Run folder: {folder}"), err=form != "text")
    if form == "text" and "(seq " in told:
        click.echo("(seq N) is the call with that `seq` in SCENARIO/TRIAL/trace.json there.")
    for line in ("", *matrix_lines(run.targets)) if form == "text" else ():
        click.echo(line)
    if run.cancelled:
        again = f"wiretrap run --resume {shlex.quote(str(folder))}"
        if program is not None:
            again += f" --command {shlex.quote(hiding.text(program))}"
        click.echo(visible(f"Go on with it: {again}"), err=form != "text")
    say_gate(run, apart=form != "text")
    raise SystemExit(run.exit_code)
