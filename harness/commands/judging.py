"""The option that names a judge, for every command that judges.

Refuses to know what a judge is asked.
"""

from pathlib import Path

import click

from harness.judges import SCRIPTED, Judge, JudgeFileError, open_judge

judge_option = click.option(
    "--judge",
    "judge_spec",
    metavar="NAME",
    help="A model that gives its opinion on `judged` assertions: `default`, another by its name, or scripted:FILE.",
)


def absolute(spec: str | None) -> str | None:
    """The same with a file that is found from everywhere."""
    if spec is None or not spec.startswith(SCRIPTED):
        return spec
    return f"{SCRIPTED}{Path(spec.removeprefix(SCRIPTED)).absolute()}"


def opened(spec: str | None) -> Judge | None:
    """The judge that was named; what is wrong with it is said on stderr, and the exit code is 2."""
    try:
        return None if spec is None else open_judge(spec)
    except JudgeFileError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(2) from error
