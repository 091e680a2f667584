"""`wiretrap selfcheck PATH…`: hold scenarios against wrong runs made of their right one.

Refuses to know what the wrong runs are.
"""

import json
import os
import secrets
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from types import FrameType

import click

from harness.commands.run import terminal_style
from harness.discovery import load_scenarios
from harness.judge import finding_names
from harness.report.progress import Progress
from harness.report.selfchecks import as_text
from harness.runsecrets import hiding_for
from harness.scenario import Scenario
from harness.selfchecking import self_check
from harness.selfcheckresult import SelfCheck, exit_code
from harness.targets.fixtures import fixture_offers
from proxy.problem import ProblemError


@click.command("selfcheck", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Mutants at once.")
@click.option("--all", "whole", is_flag=True, help="Show the mutants that were caught too, and by what.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
@click.option("--may-hold", multiple=True, metavar="ID", help="An assertion that no mutant need break; repeatable.")
def command(paths: tuple[Path, ...], jobs: int, whole: bool, as_json: bool, may_hold: tuple[str, ...]) -> None:
    """Check that scenarios fail what is wrong.

    The start state and every mutant of the `reference` run must fail, and the reference itself must pass. PATH is a
    scenario, or a folder with all scenarios under it. The exit code is 0 when each mutant was caught and each assertion
    was broken by one, 1 when not, 2 when the command or a scenario is wrong, and 3 when none could be checked.
    """
    hiding = hiding_for((), os.environ, secrets.token_hex(32))
    try:
        scenarios = load_scenarios(list(paths), fixture_offers())
    except ProblemError as error:
        for problem in error.problems:
            click.echo(hiding.text(str(problem)), err=True)
        raise SystemExit(2) from error
    hiding = hiding_for(scenarios, os.environ, secrets.token_hex(32))
    _check_ids(may_hold, scenarios)
    checks: list[SelfCheck] = []
    progress = Progress(len(scenarios), sys.stderr)
    try:
        with _interrupted(at_once=jobs > 1) as cancel:
            for scenario in scenarios:
                check = self_check(scenario, jobs, may_hold=may_hold, cancel=cancel)
                checks.append(check)
                progress.advance(scenario.id, check.result == "pass")
    except KeyboardInterrupt:
        progress.finish()
        click.echo(f"wiretrap: stopped after {len(checks)} of {len(scenarios)} scenarios", err=True)
        raise SystemExit(130) from None
    progress.finish()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if as_json:
        document = {"schema_version": 1, "scenarios": [check.as_json() for check in checks]}
        click.echo(hiding.text(json.dumps(document, indent=2)))
    else:
        click.echo(hiding.text(as_text(checks, terminal_style(), whole=whole)), nl=False)
    raise SystemExit(exit_code(checks))


def _check_ids(may_hold: tuple[str, ...], scenarios: Sequence[Scenario]) -> None:
    known = {name for scenario in scenarios for name in finding_names(scenario.assertions)}
    for name in may_hold:
        if name not in known:
            there = ", ".join(sorted(known))
            raise click.BadParameter(f"no assertion is called {name!r}; there are: {there}", param_hint="--may-hold")


@contextmanager
def _interrupted(*, at_once: bool) -> Iterator[int]:
    """A descriptor that is readable once Ctrl-C was pressed, or SIGTERM or SIGHUP came, so that a trial ends in order.

    The second time, and the first with `at_once`, it is a KeyboardInterrupt: other processes are waited for then.
    """
    read, write = os.pipe()
    told: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        os.write(write, b"x")
        if at_once or len(told) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield read
        if told:
            raise KeyboardInterrupt
    except BaseExceptionGroup as group:
        # What was being awaited at the second time has it in a group.
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)
