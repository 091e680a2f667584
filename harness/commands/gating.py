"""The options of commands that end in a gate.

Refuses to know what a gate is held against.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import click

from harness.results import RunResult


class Share(click.FloatRange):
    """A share from 0 to 1. Its range alone would let NaN in, which is below nothing, so that every gate would hold."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share as a number; what is none is a usage error."""
        share: float = super().convert(value, param, ctx)
        if math.isnan(share):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return share


Command = TypeVar("Command", bound=Callable[..., None])


def gate_options(command: Command) -> Command:
    """Adds `--min-pass-rate` and `--fail-on` to a command."""
    fail_on = click.option(
        "--fail-on",
        multiple=True,
        type=click.Choice(["fail", "not_run"]),
        help="Fail on a scenario with this result, and not on others; an error always fails.",
    )
    rate = click.option(
        "--min-pass-rate",
        type=Share(),
        metavar="SHARE",
        help="The share of valid trials that must pass, in place of all.",
    )
    return rate(fail_on(command))


def say_gate(run: RunResult, *, apart: bool) -> None:
    """The last line of a command: whether the gate that was asked for holds; `apart` from a document on stdout."""
    told = run.gate.told(run.tasks, [scenario.result for scenario in run.scenarios])
    if told is not None:
        click.echo(told, err=apart)
