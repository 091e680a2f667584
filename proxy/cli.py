"""The `wiretrap proxy` commands.

Refuses to know what happens on the wire, and what the options that they share come to.
"""

import os
import sys
from typing import TYPE_CHECKING, Unpack

import click

from proxy import __version__
from proxy.bridgecli import bridge, connect
from proxy.options import make_redactor, read_context_and_key, read_first, start
from proxy.policy import TRUST_LABELS
from proxy.saying import say
from proxy.sharedoptions import Common, Shared, common, shared
from proxy.spanfile import SpanFile

if TYPE_CHECKING:
    from proxy.redact import Redactor


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def proxy() -> None:
    """Put the proxy in front of an MCP server."""


@proxy.command(
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
    options_metavar="--server ID [OPTION]... [--]",
    short_help="In front of a server that speaks MCP over stdio.",
)
@shared
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND [ARG]...")
def stdio(command: tuple[str, ...], **options: Unpack[Shared]) -> None:
    """Start COMMAND, an MCP server over stdio, and stand between it and the client on our own stdin and stdout.

    Every call is recorded before it is passed on; a call that the policy denies never reaches the server. Options of
    ours come before COMMAND; what follows it is the server's. The exit code is the server's; or 2 when we could not
    start, 127 when COMMAND is not found, 126 when it is no program, and 74 when the record is not whole and the
    server's was 0.
    """
    redactor: Redactor | None = None
    try:
        context, key = read_first(options)
        from proxy.child import server_environment  # noqa: PLC0415  (it loads ctypes, which no error message needs)

        redactor = make_redactor(context, key, server_environment(os.environ, ""))
        started = start("stdio", options, context, key, redactor, command)
        file = SpanFile.create(started.folder, options["server"])
        if not options["quiet"]:
            say(f"server {options['server']}, {started.said}", redactor)
        say(started.warning, redactor)
        waiting = None
        if started.policy is not None and started.policy.holds:
            from proxy.kin import parent  # noqa: PLC0415  (few policies ask for approvals)

            waiting = started.waiting(parent())
        offered = None
        if started.policy is not None and not options["quiet"] and not context.scenario_id:
            from proxy.offered import offered_to  # noqa: PLC0415  (many connections have no policy)

            offered = offered_to(options["server"], started.policy, lambda text: say(text, redactor))
        from proxy.stdio import serve  # noqa: PLC0415  (only once the start is certain: it loads ctypes)

        serve(
            started.identity,
            started.policy,
            __version__,
            file,
            command,
            redactor,
            splice=started.splice,
            faults=started.fault_plan(),
            exporter=started.exporter,
            waiting=waiting,
            offered=offered,
        )
    except ValueError as error:
        say(str(error), redactor)
        sys.exit(getattr(error, "code", 2))


@proxy.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="--server ID --url URL --port PORT [OPTION]...",
    short_help="In front of a server that speaks MCP over HTTP.",
)
@shared
@click.option("--url", required=True, metavar="URL", help="Where the server is; all of its origin is passed on.")
@click.option("--port", required=True, type=click.IntRange(0, 65535), help="The port to listen at; 0 chooses one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further host name to be reached by.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="A further web page origin to let in.")
@click.option(
    "--upstream-ca",
    default="",
    metavar="FILE",
    help="Certificates that the server's may be signed by, besides the system's.",
)
def http(
    url: str,
    port: int,
    host: str,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    upstream_ca: str,
    **options: Unpack[Shared],
) -> None:
    """Stand in front of an MCP server over HTTP: the client takes our address in place of the server's, same path.

    Every call is recorded before it is passed on; a call that the policy denies never reaches the server. Once requests
    are taken, one line of JSON on stdout says where: url, port, server. It ends on SIGTERM, SIGINT or SIGHUP, with 0,
    or with 74 when the record is not whole; with 2 when it could not start.
    """
    redactor: Redactor | None = None
    try:
        context, key = read_first(options)
        redactor = make_redactor(context, key, {})
        started = start("http", options, context, key, redactor, (url,))
        from proxy.httpserve import Front, serve  # noqa: PLC0415  (a server costs more than all else here)
        from proxy.httpwords import read_origin  # noqa: PLC0415  (the same)

        front = Front(*read_origin(url), host, port, allow_host, allow_origin, upstream_ca)
        code = serve(front, started, __version__, quiet=options["quiet"])
    except ValueError as error:
        say(str(error), redactor)
        code = 2
    sys.exit(code)


@proxy.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="--server ID=HOST[:PORT]... --port PORT [OPTION]...",
    short_help="For agents that take HTTP_PROXY and HTTPS_PROXY.",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    required=True,
    metavar="ID=HOST[:PORT]",
    help="A server: its id, and the host that it is at; without PORT every port of it. May be given often.",
)
@click.option(
    "--trust",
    "trusts",
    multiple=True,
    metavar="ID=LABEL",
    help=f"How far a server is trusted: {', '.join(TRUST_LABELS)}.  [default: third_party]",
)
@click.option("--port", required=True, type=click.IntRange(0, 65535), help="The port to listen at; 0 chooses one.")
@click.option(
    "--ca-dir",
    type=click.Path(),
    metavar="DIR",
    help="Read TLS too, with certificates made here; the authority that signs them is kept in DIR.",
)
@click.option(
    "--upstream-ca",
    type=click.Path(),
    metavar="FILE",
    help="Take certificates of servers that FILE's sign, besides those of the system's store.",
)
@common
def forward(
    servers: tuple[str, ...],
    trusts: tuple[str, ...],
    port: int,
    ca_dir: str | None,
    upstream_ca: str | None,
    **options: Unpack[Common],
) -> None:
    """Be the proxy of an agent that takes HTTP_PROXY and HTTPS_PROXY: URLs stay what they are.

    Requests to the hosts of --server are recorded and judged as by `wiretrap proxy http`, also in a tunnel (CONNECT);
    other hosts pass, unread and not recorded. TLS is read with --ca-dir only: without it it passes and is recorded as
    not observable; with a policy in force it is refused. Once requests are taken, one line of JSON on stdout says
    where: url, port, servers. It ends on SIGTERM, SIGINT or SIGHUP, with 0, or with 74 when the record is not whole;
    with 2 when it could not start.
    """
    redactor: Redactor | None = None
    try:
        context, key = read_context_and_key(options["context_file"])
        redactor = make_redactor(context, key, {})
        from proxy.forwardserve import read_plan, serve  # noqa: PLC0415  (a server costs more than all else here)

        plan = read_plan(servers, trusts, options, context, key, redactor)
        authority = None
        if ca_dir is not None:
            from proxy.certificates import open_authority  # noqa: PLC0415  (without it nobody needs cryptography)

            authority = open_authority(ca_dir)
        code = serve(plan, port, authority, upstream_ca, __version__, quiet=options["quiet"])
    except ValueError as error:
        say(str(error), redactor)
        code = 2
    sys.exit(code)


for _command in (bridge, connect):
    proxy.add_command(_command)


def main(arguments: list[str]) -> None:
    """Run `wiretrap proxy ARGUMENTS`."""
    proxy.main(arguments, prog_name="wiretrap proxy")
