"""`wiretrap run PATH…`: run scenarios, judge them, write a run folder and show the table.

Refuses to know how a trial is run and what is judged.
"""

import os
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

import click

from harness.agentfile import unknown_placeholders
from harness.agentprogram import program_files
from harness.commands.gating import gate_options
from harness.commands.judging import absolute, judge_option, opened
from harness.gate import EVERYTHING, Gate
from harness.hiding import Hiding, hide_last_words
from harness.judges import open_judge
from harness.lastwords import last_words
from harness.manifest import RunFacts, manifest
from harness.report.junit import as_junit
from harness.report.progress import Progress
from harness.report.table import Style, as_table
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.runfolder import RunFolderError, as_text, make_run_folder, make_way, replace
from harness.runner import Runner
from harness.runsecrets import hiding_for, missing_variables
from harness.selection import Selected, Selection, kind_of, load_selection
from harness.targets.profiles.known import PROFILES, ProfileName
from harness.verdict import Result
from harness.worker import Job, Start
from proxy.endpoint import EndpointError, parse_endpoint
from proxy.problem import ProblemError
from proxy.visible import visible


def _selection(
    paths: tuple[str, ...], agent: str | None, program: str | None, profile: ProfileName | None
) -> Selection:
    if agent is not None and (program is not None or profile is not None):
        raise click.UsageError("give --agent, or --command and --profile, not both")
    if program is None and profile is None:
        return Selection(paths, agent_file=agent)
    if program is None and profile is not None:
        program = PROFILES[profile].program
    try:
        words = tuple(shlex.split(program))
    except ValueError as error:
        raise click.UsageError(f"--command {program!r}: {error}") from error
    if not words:
        raise click.UsageError("--command names no program")
    if shutil.which(words[0]) is None:
        raise click.UsageError(f"--command: the program {words[0]!r} is not found")
    for message in unknown_placeholders(words):
        raise click.UsageError(f"--command: {message}")
    return Selection(paths, command=words, profile=profile)


def terminal_style() -> Style:
    """Width and colour of standard output, both only on a terminal; NO_COLOR is heeded (no-color.org)."""
    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR")
    return Style(shutil.get_terminal_size().columns if terminal else None, colour)


def run_selected(
    selected: Selected,
    selection: Selection,
    *,
    trials: int | None,
    jobs: int,
    out: Path,
    keep: bool,
    gate: Gate = EVERYTHING,
    otlp: str | None = None,
    judge: str | None = None,
) -> tuple[RunResult, Path]:
    """Run what was selected; the result, and the run folder with its reports. Raises RunFolderError and ReportError.

    `judge` names a judge whose file is found from everywhere.
    """
    began = time.monotonic()
    key = secrets.token_hex(32)
    hiding = hiding_for(selected.by_id.values(), os.environ, key)
    _warn(hiding, missing_variables(selected.by_id.values(), os.environ))
    folder = make_run_folder(out)
    digests, shown = selected.digests(), selected.digests(hiding.file_digest)
    redacted = frozenset(path for path, digest in shown.items() if digest != digests[path])
    programs = {name: program_files(selected.agents[name], one, hiding) for name, one in selected.by_id.items()}
    facts = RunFacts(folder.name, datetime.now(UTC), trials, jobs, selected, hiding, shown, redacted, programs,
                     None if judge is None else open_judge(judge).name)  # fmt: skip
    replace(folder / "manifest.json", as_text(manifest(facts, (), None)))
    work = [
        Job(scenario.id, trial, kind_of(selected.agents[scenario.id]), scenario.limits.seconds)
        for scenario in selected.by_id.values()
        for trial in range(1, (trials or scenario.trials) + 1)
    ]
    progress = Progress(len(work), sys.stderr)

    def hear(result: TrialResult) -> None:
        progress.advance(result.scenario, result.verdict.result == "pass")

    start = Start(
        parent=os.getpid(),
        run_id=folder.name,
        run_folder=str(folder.absolute()),
        redact_key=key,
        keep=keep,
        selection=selection,
        digests=digests,
        otlp=otlp,
        judge=judge,
    )
    runner = Runner(start, work, jobs, hear)
    results = runner.run()
    progress.finish()
    seconds = time.monotonic() - began
    scenarios = _by_scenario(selected, results, hiding)
    run = RunResult(facts.run_id, scenarios, seconds, cancelled=runner.cancelled, gate=gate)
    written = {
        "report.json": as_text(run.as_json()),
        "junit.xml": as_junit(run),
        "manifest.json": as_text(manifest(facts, results, datetime.now(UTC))),
    }
    taken = []
    for name, text in written.items():
        try:
            if (folder / name).is_dir():
                # An agent was here first.
                make_way(folder / name)
                taken.append(name)
            replace(folder / name, text)
        except OSError as error:
            raise ReportError(f"{folder / name} cannot be written: {error.strerror or error}", run) from error
    if taken:
        raise ReportError(f"while agents ran somebody took the place of {', '.join(taken)}; it was moved aside", run)
    return run, folder


class ReportError(ValueError):
    """A report that could not be written in its place; `run` is what it says, or would have said."""

    def __init__(self, message: str, run: RunResult) -> None:
        super().__init__(message)
        self.run = run


def _warn(hiding: Hiding, missing: Sequence[str]) -> None:
    if hiding.too_short:
        click.echo(f"wiretrap: not redacted, since shorter than 8 characters: {', '.join(hiding.too_short)}", err=True)
    if missing:
        click.echo(f"wiretrap: secrets without a value, so not redacted: {', '.join(missing)}", err=True)


def _by_scenario(selected: Selected, results: Sequence[TrialResult], hiding: Hiding) -> tuple[ScenarioResult, ...]:
    return tuple(
        ScenarioResult(
            scenario.id,
            hiding.text(scenario.title),
            scenario.category,
            tuple(result for result in results if result.scenario == scenario.id),
        )
        for scenario in selected.by_id.values()
    )


@click.command("run", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--agent", metavar="FILE", help="An agent file, in place of the scenarios' own agents.")
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
@click.option("--trials", type=click.IntRange(min=1), metavar="N", help="Trials of each scenario [default: its own].")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Trials at once.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    metavar="DIR",
    help="Where the run folder is made.",
)
@click.option(
    "--otlp", metavar="URL", help="Send a copy of every span on as it is written, as `wiretrap proxy stdio` does."
)
@judge_option
@click.option("--keep", is_flag=True, help="Keep each trial's databases and MCP configuration.")
@gate_options
def command(
    paths: tuple[str, ...],
    agent: str | None,
    program: str | None,
    profile: ProfileName | None,
    trials: int | None,
    jobs: int,
    out: Path,
    otlp: str | None,
    judge_spec: str | None,
    keep: bool,
    min_pass_rate: float | None,
    fail_on: tuple[Result, ...],
) -> None:
    """Run scenarios, judge them, write a run folder, and show the table.

    PATH is a scenario, or a folder with all scenarios under it. The exit code is 0 when everything passes (or the gate
    of --min-pass-rate and --fail-on holds), 1 when not, 2 when the command or a scenario is wrong, 3 when no trial was
    valid, and 130 after Ctrl-C.
    """
    selection = _selection(tuple(paths), agent, program, profile)
    gate = Gate(min_pass_rate, frozenset(fail_on))
    # What scenarios name is not known before they are read; the environment is.
    hiding = hiding_for((), os.environ, secrets.token_hex(32))
    hide_last_words(hiding)
    try:
        if otlp is not None:
            parse_endpoint(otlp)
    except EndpointError as error:
        raise click.UsageError(str(error)) from error
    judge = absolute(judge_spec)
    opened(judge)  # what is wrong with it is said before anything runs
    try:
        selected = load_selection(selection)
        hide_last_words(hiding_for(selected.by_id.values(), os.environ, secrets.token_hex(32)))
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
        raise click.UsageError(visible(str(error))) from error
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
    table = as_table(run, terminal_style(), last_words(run, folder))
    click.echo(table, nl=False)
    click.echo(visible(f"Run folder: {folder}"))
    if "(seq " in table:
        click.echo("(seq N) is the call with that `seq` in SCENARIO/TRIAL/trace.json there.")
    raise SystemExit(run.exit_code)
