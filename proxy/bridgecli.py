"""The commands of the two bridges: `wiretrap proxy bridge` and `wiretrap proxy connect`.

Refuses to know what happens on the wire, and what the options that all proxies share come to.
"""

import os
import sys
from typing import TYPE_CHECKING, Unpack

import click

from proxy import __version__
from proxy.context import ContextError
from proxy.options import make_redactor, read_first, start
from proxy.saying import say
from proxy.sharedoptions import Shared, shared

if TYPE_CHECKING:
    from proxy.redact import Redactor


@click.command(
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
    options_metavar="--server ID --port PORT [OPTION]... [--]",
    short_help="HTTP in front of a server that speaks MCP over stdio.",
)
@shared
@click.option("--port", required=True, type=click.IntRange(0, 65535), help="The port to listen at; 0 chooses one.")
@click.option("--path", default="/mcp", show_default=True, help="The path that MCP is at.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further host name to be reached by.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="A further web page origin to let in.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND [ARG]...")
def bridge(
    port: int,
    path: str,
    host: str,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    command: tuple[str, ...],
    **options: Unpack[Shared],
) -> None:
    """Serve COMMAND, an MCP server over stdio, over Streamable HTTP.

    A client of the revisions up to 2025-11-25 gets a server process of its own for its session; those of 2026-07-28
    share one. Over stdio there are no headers, sessions and streams, so the bridge has to write these itself: statuses,
    headers, session ids and event streams, and towards a shared server the ids and progress tokens of requests, which
    clients get back as they wrote them.

    Every call is recorded before it is passed on; a call that the policy denies never reaches the server. Once requests
    are taken, one line of JSON on stdout says where: url, port, server. It ends on SIGTERM, SIGINT or SIGHUP, with 0,
    or with 74 when the record is not whole; with 2 when it could not start, 127 when COMMAND is not found, and 126 when
    it is no program.
    """
    redactor: Redactor | None = None
    try:
        context, key = read_first(options)
        from proxy.child import server_environment  # noqa: PLC0415  (it loads ctypes, which no error message needs)

        redactor = make_redactor(context, key, server_environment(os.environ, ""))
        started = start("http", options, context, key, redactor, command)
        if not path.startswith("/") or not path.isascii() or not path.isprintable() or set(path) & set("?# "):
            raise ContextError(f"--path {path}: a path begins with / and has no query, blank or fragment")
        from proxy.bridgeserve import BridgeFront, serve  # noqa: PLC0415  (a server costs more than all else here)

        front = BridgeFront(path, host, port, allow_host, allow_origin)
        code = serve(front, command, started, __version__, quiet=options["quiet"])
    except ValueError as error:
        say(str(error), redactor)
        code = getattr(error, "code", 2)
    sys.exit(code)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="--server ID [OPTION]...",
    short_help="Stdio in front of a server that speaks MCP over HTTP.",
)
@shared
@click.option(
    "--header", multiple=True, metavar="'NAME: VALUE'", help="A header for every request. May be given often."
)
@click.option(
    "--header-env",
    multiple=True,
    metavar="NAME=VARIABLE",
    help="A header whose value is that of an environment variable, which no list of processes shows.",
)
@click.option("--bearer-env", metavar="VARIABLE", help="The variable that holds a bearer token for Authorization.")
@click.argument("url", metavar="URL")
def connect(
    url: str,
    header: tuple[str, ...],
    header_env: tuple[str, ...],
    bearer_env: str | None,
    **options: Unpack[Shared],
) -> None:
    """Stand between a client on our own stdin and stdout and the MCP server at URL, which speaks Streamable HTTP.

    Over stdio there are no headers, sessions and streams, so the bridge has to write and keep them itself: session id,
    version and method headers, the listening stream, and where a broken stream goes on. Ids and messages are the
    client's and the server's own. An HTTP error becomes a JSON-RPC error, which says so. Values of headers are secret:
    they stand in no record.

    Every call is recorded before it is passed on; a call that the policy denies never reaches the server. When its
    input ends it waits for the answers that are still to come, ends the session, and exits with 0, or with 74 when the
    record is not whole; with 2 when it could not start.
    """
    redactor: Redactor | None = None
    try:
        context, key = read_first(options)
        from urllib.parse import parse_qsl  # noqa: PLC0415  (the same as below)

        from proxy.connectserve import Target, serve  # noqa: PLC0415  (it loads asyncio and h11)
        from proxy.connectwords import read_headers  # noqa: PLC0415  (the same)
        from proxy.heard import secrets_of  # noqa: PLC0415  (the same)
        from proxy.httpwords import read_origin  # noqa: PLC0415  (the same)

        headers = read_headers(header, header_env, os.environ, bearer_env)
        context = context._replace(secrets=(*context.secrets, *secrets_of(headers)))
        address, mark, query = url.partition("?")
        redactor = make_redactor(context, key, dict(parse_qsl(query)))
        started = start("stdio", options, context, key, redactor)
        origin, path = read_origin(address)
        if not all("!" <= letter <= "~" and letter != "#" for letter in path + query):
            raise ContextError(
                "the URL holds a blank, a fragment, or characters that are not ASCII; percent-encode them"
            )
        target = Target(origin, f"{path or '/'}{mark}{query}", headers)
        if not options["quiet"]:
            say(f"server {options['server']}, {origin}/…, {started.said}", redactor)
        say(started.warning, redactor)
        code = serve(target, started, __version__)
    except ValueError as error:
        say(str(error), redactor)
        code = 2
    sys.stderr.flush()
    os._exit(code)  # a thread of ours may wait for a client that says nothing
