"""`wiretrap schema NAME`: print the JSON Schema of a kind of file.

Refuses to know what is in it.
"""

import click

from harness.schemas.catalogue import SCHEMAS, schema_text


@click.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", type=click.Choice(sorted(SCHEMAS)), metavar="|".join(sorted(SCHEMAS)))
def command(name: str) -> None:
    """Print the JSON Schema of a kind of file, for an editor or a check of your own.

    Which servers, tools and files there are, no schema knows; `wiretrap validate` does.
    """
    click.echo(schema_text(name), nl=False)
