"""`wiretrap wrap FILE`: rewrite a client's configuration so that every server in it goes through the proxy, or undo it.

Refuses to know the formats of clients.
"""

from pathlib import Path

import click

from harness.targets.proxied import wiretrap_command
from harness.wrapping.clientdisk import ClientFile, ClientFileError, kept_texts, read_client_file, undo, write_wrapped
from harness.wrapping.clientfile import Found, rewrite
from harness.wrapping.entries import Wrapping
from harness.wrapping.located import ConfigError
from harness.wrapping.unwrapping import unwrap
from proxy.glob import glob_server
from proxy.policy import PolicyError, load_policy
from proxy.saying import say
from proxy.visible import visible


@click.command("wrap", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--policy", type=click.Path(path_type=Path), metavar="FILE", help="A policy for every server.")
@click.option("--spans", type=click.Path(path_type=Path), metavar="DIR", help="The folder for the record of them all.")
@click.option("--print", "shows", is_flag=True, help="Show what would stand in FILE, and write nothing.")
@click.option("--undo", "undoes", is_flag=True, help="Put back what stood in FILE before.")
def command(path: Path, *, policy: Path | None, spans: Path | None, shows: bool, undoes: bool) -> int:
    """Rewrite FILE, an MCP configuration of a client, so that every server in it goes through the proxy.

    It may be that of Claude Desktop, Claude Code, Cursor, VS Code, Codex or Gemini CLI. All else in it stays byte for
    byte, and what it was is kept beside it. The exit code is 0 when every server goes through the proxy, 1 when some
    were left as they are, and 2 when FILE or the command is wrong.
    """
    if undoes and (shows or policy is not None or spans is not None):
        raise click.UsageError("--undo goes with no other option")
    try:
        file = read_client_file(path)
        if undoes:
            return _undo(file)
        return _wrap(file, policy, spans, shows=shows)
    except (ClientFileError, PolicyError) as error:
        for line in str(error).splitlines():
            say(line)
    except ConfigError as error:
        say(f"{path}: {error}")
    return 2


def _undo(file: ClientFile) -> int:
    if undo(file):
        more = "; it was wrapped before that too, and --undo again goes back further" if any(file.backups()) else ""
        click.echo(f"{visible(str(file.path))}: put back as it was, byte for byte{more}")
        return 0
    kept = ", ".join(path.name for path in file.backups())
    if file.path.suffix == ".toml":
        raise ClientFileError(f"{file.path}: it was changed since it was rewritten, so nothing is undone; see {kept}")
    made = unwrap(file.text, kept_texts(file))
    for server in made.servers:
        click.echo(_line(server))
    if made.text.encode() != file.data:
        file.replace(made.text.encode())
    said = "was changed since it was rewritten: only its servers are put back"
    click.echo(visible(f"{file.path} {said}, and the backup stays: {kept}"))
    return int(any(server.what == "left" for server in made.servers))


def _wrap(file: ClientFile, policy: Path | None, spans: Path | None, *, shows: bool) -> int:
    options: list[str] = []
    named: dict[str, None] = {}
    if policy is not None:
        globs = [glob_server(rule.glob) for rule in load_policy(str(policy)).rules]
        named = dict.fromkeys(server for server in globs if server is not None)
        options += ["--policy", str(policy.absolute())]
    if spans is not None:
        options += ["--spans", str(spans.absolute())]
    how = Wrapping(wiretrap_command(), tuple(options), sse=".gemini" in file.path.parts)
    made = rewrite(file.text, "toml" if file.path.suffix == ".toml" else "json", how)
    data = made.text.encode()
    if shows:
        click.echo(data, nl=False)
    for server in made.servers:
        click.echo(_line(server), err=shows)
    ids = [server.id for server in made.servers]
    for name in named:
        # It may be shared with other files, so that is no error.
        if name not in ids:
            say(f"{policy} speaks of the server {name!r}, and those of {file.path} are: {', '.join(ids)}")
    if data == file.data:
        click.echo("nothing to do", err=shows)
    elif not shows:
        kept = write_wrapped(file, data)
        click.echo(f"{visible(str(file.path))} is rewritten; what it was is kept as {visible(kept.name)}")
    return int(any(server.what == "left" for server in made.servers))


def _line(server: Found) -> str:
    match server.what:
        case "wrapped":
            more = f"; {server.why}" if server.why else ""
            return visible(f"{server.name}: goes through the proxy as mcp/{server.id}/...{more}")
        case "already":
            return visible(f"{server.name}: went through the proxy already, as mcp/{server.id}/...")
        case "undone":
            return visible(f"{server.name}: no longer goes through the proxy")
        case "left":
            return visible(f"{server.name}: left as it is: {server.why}")
