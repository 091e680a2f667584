"""The options of commands that run trials: how many at once, and where the run folder is made.

Refuses to know what is run.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., None])


def trial_options(command: Command) -> Command:
    """Adds `--jobs` and `--out` to a command."""
    jobs = click.option(
        "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Trials at once."
    )
    out = click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=Path("runs"),
        show_default=True,
        metavar="DIR",
        help="Where the run folder is made.",
    )
    return jobs(out(command))
