"""`wiretrap import FORMAT FILE...`: runs that were recorded elsewhere, written as traces of ours.

Refuses to know the formats.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click

from harness.importing.form import Imported, ImportFormatError
from harness.importing.formats import FORMATS
from harness.places import text_of
from harness.query import QueryError, write_database
from harness.scenariofile import Category
from harness.tracefile import trace_text
from proxy.visible import visible

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def write_run(run: Imported, out: Path) -> list[Path]:
    """Write `NAME.trace.json`, `NAME.<server>.db` for each database, and `NAME.yaml` for a task that stands beside it.

    Raises ImportFormatError and OSError.
    """
    if _NAME.fullmatch(run.name) is None or not run.name.strip("."):
        raise ImportFormatError(f"{visible(run.name)}: is no name for a file")
    written = [out / f"{run.name}.trace.json"]
    with written[0].open("x", encoding="ascii") as file:
        file.write(trace_text(run.trace))
    for server, dump in run.databases.items():
        written.append(out / f"{run.name}.{server}.db")
        write_database(written[-1], dump)
    if run.task is not None:
        written.append(out / f"{run.name}.yaml")
        with written[-1].open("x", encoding="ascii") as file:
            # JSON is YAML.
            file.write(json.dumps(dict(run.task), indent=2) + "\n")
    return written


def stem_of(file: Path, form: str) -> str:
    """What a file's run is called; a trace of the OWASP harness in the folder of its category has that before it."""
    stem, category = file.name.partition(".")[0], file.absolute().parent.name
    return f"{category}.{stem}" if form == "owasp" and category in get_args(Category) else stem


@click.command("import", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("form", type=click.Choice(sorted(FORMATS)), metavar="FORMAT")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="here",
    metavar="DIR",
    help="Where the traces are written.",
)
@click.option(
    "--name", metavar="NAME", help="What the run is called, such as its scenario's id; for a file of one run."
)
def command(form: str, files: tuple[Path, ...], out: Path, name: str | None) -> None:
    """Write runs that were recorded elsewhere as traces of ours, for `wiretrap check`.

    FORMAT is agent-arena, agent-mark or owasp. A task that stands beside a run is written as a scenario. No file is
    written over. Exit code 2 when a file is not of the format, or a trace cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        click.echo(f"wiretrap import: --out {out}: {error.strerror}", err=True)
        raise SystemExit(2) from error
    for file in files:
        try:
            text = text_of(file)
            stem = stem_of(file, form)
            runs = list(FORMATS[form](text, stem, str(file)))
            if name is not None and len(files) + len(runs) > 2:
                raise ImportFormatError(f"{file}: --name names one run, and there are more")
            for run in runs:
                for path in write_run(run if name is None else replace(run, name=name), out):
                    click.echo(str(path))
        except (ImportFormatError, QueryError) as error:
            click.echo(f"wiretrap import: {error}", err=True)
            raise SystemExit(2) from error
        except (OSError, UnicodeDecodeError) as error:
            click.echo(f"wiretrap import: {file}: {error}", err=True)
            raise SystemExit(2) from error
