"""The `wiretrap proxy` commands: options into a policy, an identity and a span file.

Refuses to know what happens on the wire.
"""

import os
import sys
from collections.abc import Callable, Mapping
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from proxy import __version__
from proxy.context import Context, ContextError, read_context, redact_key
from proxy.policy import TRUST_LABELS, Policy, check_server_id, deny_policy, load_policy
from proxy.record import Identity, parse_traceparent
from proxy.secretvalues import named_secrets
from proxy.spanfile import SpanFile

if TYPE_CHECKING:
    from proxy.redact import Redactor


def _redactor(context: Context, key: bytes, served: Mapping[str, str]) -> "Redactor | None":
    """What takes the secrets out of the record; None where there are none. Says which values are too short.

    `served` is the environment that a server of ours gets.
    """
    secrets = named_secrets(context.secrets, served, os.environ)
    if not secrets:
        return None
    from proxy.redact import Redactor  # noqa: PLC0415  (compiles patterns, which most connections can do without)

    redactor = Redactor(secrets.values(), key, tuple(secrets))
    if redactor.too_short:
        _say(f"not redacted, since shorter than 8 characters: {', '.join(redactor.too_short)}", redactor)
    return redactor if redactor.active else None


def _say(text: str, redactor: "Redactor | None") -> None:
    said = text if redactor is None else redactor.text(text)[0]
    sys.stderr.write(f"wiretrap: {said}\n")
    sys.stderr.flush()


def spans_folder(run_id: str, environment: "os._Environ[str]") -> str:
    """Where spans go when nobody said: $XDG_STATE_HOME/wiretrap/spans/<run id>."""
    home = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "wiretrap", "spans", run_id)


def _policy(path: str | None, deny: tuple[str, ...]) -> Policy | None:
    if path is not None:
        return load_policy(path, deny)
    return deny_policy(deny) if deny else None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def proxy() -> None:
    """Put the proxy in front of an MCP server."""


_F = TypeVar("_F", bound=Callable[..., None])


def _shared(command: _F) -> _F:
    """The options that every command of the proxy has."""
    for option in reversed(
        (
            click.option(
                "--server", required=True, metavar="ID", help="The server's id: letters, digits, '.', '_' and '-'."
            ),
            click.option(
                "--trust",
                type=click.Choice(TRUST_LABELS),
                default="third_party",
                show_default=True,
                help="How far the server is trusted; policy rules may ask for it.",
            ),
            click.option(
                "--policy", "policy_file", type=click.Path(), metavar="FILE", help="A policy file (docs/policy.md)."
            ),
            click.option(
                "--deny",
                multiple=True,
                metavar="GLOB",
                help="Deny what fits, as mcp/SERVER/TOOL, before the policy's rules. May be given often.",
            ),
            click.option(
                "--spans",
                type=click.Path(),
                metavar="DIR",
                help="The folder for the record.  [default: $XDG_STATE_HOME/wiretrap/spans/RUN]",
            ),
            click.option(
                "--context",
                "context_file",
                type=click.Path(),
                metavar="FILE",
                help="A JSON file that says what run this is; the harness writes it.",
            ),
            click.option(
                "--quiet", is_flag=True, help="Do not say at the start what is watched, and where the record goes."
            ),
        )
    ):
        command = option(command)
    return command


class _Start(NamedTuple):
    """What the options that all commands share come to."""

    identity: Identity
    policy: Policy | None
    folder: str
    context: Context
    said: str


def _start(
    transport: str,
    server: str,
    trust: str,
    policy_file: str | None,
    deny: tuple[str, ...],
    spans: str | None,
    context: Context,
) -> _Start:
    policy = _policy(policy_file, deny)
    run_id = context.run_id or f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(2).hex()}"
    folder = spans or context.spans or spans_folder(run_id, os.environ)
    parent = parse_traceparent(context.traceparent) or ("", "")
    identity = Identity(
        server_id=server,
        trust=trust,
        transport=transport,
        connection=os.urandom(8).hex(),
        run_id=run_id,
        scenario_id=context.scenario_id,
        trial=context.trial,
        agent_id=context.agent_id,
        trace_id=parent[0],
        parent_id=parent[1],
    )
    said = "no policy" if policy is None else f"policy {policy_file or '--deny'} ({policy.mode})"
    return _Start(identity, policy, folder, context, said)


def _context(server: str, context_file: str | None) -> Context:
    problem = check_server_id(server)
    if problem is not None:
        raise ContextError(f"--server: {problem}")
    return read_context(context_file) if context_file is not None else Context()


@proxy.command(
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
    options_metavar="--server ID [OPTION]... [--]",
    short_help="In front of a server that speaks MCP over stdio.",
)
@_shared
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND [ARG]...")
def stdio(
    server: str,
    trust: str,
    policy_file: str | None,
    deny: tuple[str, ...],
    spans: str | None,
    context_file: str | None,
    quiet: bool,
    command: tuple[str, ...],
) -> None:
    """Start COMMAND, an MCP server over stdio, and stand between it and the client on our own stdin and stdout.

    Every call is recorded before it is passed on; a call that the policy denies never reaches the server. Options of
    ours come before COMMAND; what follows it is the server's. The exit code is the server's; or 2 when we could not
    start, 127 when COMMAND is not found, and 74 when the record is not whole and the server's was 0.
    """
    redactor: Redactor | None = None
    try:
        context = _context(server, context_file)
        from proxy.child import server_environment  # noqa: PLC0415  (it loads ctypes, which no error message needs)

        redactor = _redactor(context, redact_key(context, context_file), server_environment(os.environ, ""))
        start = _start("stdio", server, trust, policy_file, deny, spans, context)
        file = SpanFile.create(start.folder, server)
        if not quiet:
            _say(f"server {server}, spans {start.folder}, {start.said}", redactor)
        from proxy.stdio import serve  # noqa: PLC0415  (only once the start is certain: it loads ctypes)

        serve(start.identity, start.policy, __version__, file, command, redactor)
    except ValueError as error:
        _say(str(error), redactor)
        sys.exit(getattr(error, "code", 2))


@proxy.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="--server ID --url URL [OPTION]...",
    short_help="In front of a server that speaks MCP over HTTP.",
)
@_shared
@click.option("--url", required=True, metavar="URL", help="Where the server is; all of its origin is passed on.")
@click.option("--port", required=True, type=click.IntRange(0, 65535), help="The port to listen at; 0 chooses one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further host name to be reached by.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="A further web page origin to let in.")
def http(
    server: str,
    trust: str,
    policy_file: str | None,
    deny: tuple[str, ...],
    spans: str | None,
    context_file: str | None,
    quiet: bool,
    url: str,
    port: int,
    host: str,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
) -> None:
    """Stand in front of an MCP server over HTTP: the client takes our address in place of the server's, same path.

    Every call is recorded before it is passed on; a call that the policy denies never reaches the server. Once requests
    are taken, one line of JSON on stdout says where: url, port, server. It ends on SIGTERM, SIGINT or SIGHUP, with 0,
    or with 74 when the record is not whole; with 2 when it could not start.
    """
    redactor: Redactor | None = None
    try:
        context = _context(server, context_file)
        key = redact_key(context, context_file)
        redactor = _redactor(context, key, {})
        start = _start("http", server, trust, policy_file, deny, spans, context)
        from proxy.httpserve import Front, Record, serve  # noqa: PLC0415  (a server costs more than all else here)
        from proxy.httpwords import read_origin  # noqa: PLC0415  (the same)

        front = Front(*read_origin(url), host, port, allow_host, allow_origin)
        record = Record(start.identity, start.folder, key, __version__, redactor)
        notes = (f"spans {start.folder}", start.said)
        code = serve(front, record, start.policy, lambda text: _say(text, redactor), notes, quiet=quiet)
    except ValueError as error:
        _say(str(error), redactor)
        code = 2
    sys.exit(code)


def main(arguments: list[str]) -> None:
    """Run `wiretrap proxy ARGUMENTS`."""
    proxy.main(arguments, prog_name="wiretrap proxy")
