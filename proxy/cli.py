"""The `wiretrap proxy` commands: options into a policy, an identity and a span file.

Refuses to know what happens on the wire.
"""

import json
import os
import sys
from base64 import b64decode
from functools import partial
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple

import click

from proxy import __version__
from proxy.glob import glob_server
from proxy.policy import TRUST_LABELS, Policy, check_server_id, deny_policy, load_policy
from proxy.record import Identity, parse_traceparent
from proxy.saying import say
from proxy.secretvalues import named_secrets
from proxy.spanfile import SpanFile

if TYPE_CHECKING:
    from proxy.otlp import Exporter
    from proxy.redact import Redactor


class ContextError(ValueError):
    """A context file that cannot be used: which file, which field, and what was expected."""


class Context(NamedTuple):
    """What the harness says of the run that a connection belongs to (record.md section 1)."""

    run_id: str = ""
    scenario_id: str = ""
    trial: int | None = None
    agent_id: str = ""
    traceparent: str = ""
    redact_key: str = ""
    secrets: tuple[str, ...] = ()
    spans: str = ""


def read_context(path: str) -> Context:
    """Read a context file: a JSON object with some of Context's fields. Raises ContextError."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise ContextError(f"{path}: the context cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise ContextError(f"{path}: a context is a JSON object")
    for name, value in data.items():
        if name not in Context._fields:
            raise ContextError(f"{path}: {name!r} is no field of a context; they are {', '.join(Context._fields)}")
        match name:
            case "trial":
                fits = isinstance(value, int) and not isinstance(value, bool)
            case "secrets":
                fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
            case _:
                fits = isinstance(value, str)
        if not fits:
            expected = {"trial": "a number", "secrets": "a list of text"}.get(name, "text")
            raise ContextError(f"{path}: {name} must be {expected}")
    if data.get("traceparent") and parse_traceparent(data["traceparent"]) is None:
        raise ContextError(f"{path}: traceparent must be a W3C traceparent")
    return Context(**{**data, "secrets": tuple(data.get("secrets", ()))})


def _key(context: Context, path: str | None) -> bytes:
    """The run's key, given in hex or base64; a random one where none is given."""
    if not context.redact_key:
        return os.urandom(32)
    for read in (bytes.fromhex, partial(b64decode, validate=True)):
        try:
            key = read(context.redact_key)
        except ValueError:
            continue
        if len(key) == 32:
            return key
    raise ContextError(f"{path}: redact_key must be 32 bytes in hex or base64")


def _redactor(context: Context, path: str | None, connection: str) -> "Redactor | None":
    """What takes the secrets out of the record; None where there are none. Says which values are too short."""
    from proxy.child import server_environment  # noqa: PLC0415  (it loads ctypes, which no error message needs)

    secrets = named_secrets(context.secrets, server_environment(os.environ, connection), os.environ)
    key = _key(context, path)
    if not secrets:
        return None
    from proxy.redact import Redactor  # noqa: PLC0415  (compiles patterns, which most connections can do without)

    redactor = Redactor(secrets.values(), key, tuple(secrets))
    if redactor.too_short:
        say(f"not redacted, since shorter than 8 characters: {', '.join(redactor.too_short)}", redactor)
    return redactor if redactor.active else None


def spans_folder(run_id: str, environment: "os._Environ[str]") -> str:
    """Where spans go when nobody said: $XDG_STATE_HOME/wiretrap/spans/<run id>."""
    home = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "wiretrap", "spans", run_id)


def _policy(path: str | None, deny: tuple[str, ...], server: str) -> Policy | None:
    """The policy that the options give; None where they give none. A `--deny` for another server is an error."""
    policy = load_policy(path, deny) if path is not None else deny_policy(deny) if deny else None
    for glob in deny:
        named = glob_server(glob)
        if named not in {None, server}:
            raise ContextError(f"--deny {glob} speaks of the server {named!r}, and --server is {server!r}")
    return policy


def _exporter(url: str | None) -> "Exporter | None":
    if url is None:
        return None
    from proxy.endpoint import parse_endpoint  # noqa: PLC0415  (most connections are not sent on)
    from proxy.otlp import Exporter  # noqa: PLC0415  (the same)

    return Exporter(parse_endpoint(url))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def proxy() -> None:
    """Put the proxy in front of an MCP server."""


@proxy.command(
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
    options_metavar="--server ID [OPTION]... [--]",
    short_help="In front of a server that speaks MCP over stdio.",
)
@click.option("--server", required=True, metavar="ID", help="The server's id: letters, digits, '.', '_' and '-'.")
@click.option(
    "--trust",
    type=click.Choice(TRUST_LABELS),
    default="third_party",
    show_default=True,
    help="How far the server is trusted; policy rules may ask for it.",
)
@click.option("--policy", "policy_file", type=click.Path(), metavar="FILE", help="A policy file (docs/policy.md).")
@click.option(
    "--deny",
    multiple=True,
    metavar="GLOB",
    help="Deny what fits, as mcp/SERVER/TOOL, before the policy's rules. May be given often.",
)
@click.option(
    "--spans",
    type=click.Path(),
    metavar="DIR",
    help="The folder for the record.  [default: $XDG_STATE_HOME/wiretrap/spans/RUN]",
)
@click.option(
    "--context",
    "context_file",
    type=click.Path(),
    metavar="FILE",
    help="A JSON file that says what run this is; the harness writes it.",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Send a copy of the record on as it is written: http(s):// over HTTP, grpc(s):// over gRPC.",
)
@click.option(
    "--trace-context",
    type=click.Choice(("pass", "splice")),
    default="pass",
    show_default=True,
    help="splice: write our span id over the parent id in `_meta.traceparent`; the server's spans nest in ours.",
)
@click.option("--quiet", is_flag=True, help="Do not say at the start what is watched, and where the record goes.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND [ARG]...")
def stdio(
    server: str,
    trust: str,
    policy_file: str | None,
    deny: tuple[str, ...],
    spans: str | None,
    context_file: str | None,
    otlp: str | None,
    trace_context: str,
    quiet: bool,
    command: tuple[str, ...],
) -> None:
    """Start COMMAND, an MCP server over stdio, and stand between it and the client on our own stdin and stdout.

    Every call is recorded before it is passed on; a call that the policy denies never reaches the server. Options of
    ours come before COMMAND; what follows it is the server's. The exit code is the server's; or 2 when we could not
    start, 127 when COMMAND is not found, 126 when it is no program, and 74 when the record is not whole and the
    server's was 0.
    """
    redactor: Redactor | None = None
    try:
        problem = check_server_id(server)
        if problem is not None:
            raise ContextError(f"--server: {problem}")
        context = read_context(context_file) if context_file is not None else Context()
        connection = os.urandom(8).hex()
        redactor = _redactor(context, context_file, connection)
        policy = _policy(policy_file, deny, server)
        exporter = _exporter(otlp)
        run_id = context.run_id or f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.urandom(2).hex()}"
        folder = spans or context.spans or spans_folder(run_id, os.environ)
        parent = parse_traceparent(context.traceparent) or ("", "")
        identity = Identity(
            server_id=server,
            trust=trust,
            transport="stdio",
            connection=connection,
            run_id=run_id,
            scenario_id=context.scenario_id,
            trial=context.trial,
            agent_id=context.agent_id,
            trace_id=parent[0],
            parent_id=parent[1],
        )
        file = SpanFile.create(folder, server)
        if not quiet:
            said = "no policy" if policy is None else f"policy {policy_file or '--deny'} ({policy.mode})"
            sent = "" if exporter is None else f", sent on to {exporter.endpoint.shown}"
            say(f"server {server}, spans {folder}, {said}{sent}", redactor)
        if policy is not None and policy.rules and all(glob_server(r.glob) not in {None, server} for r in policy.rules):
            say(f"no rule of the policy speaks of the server {server}", redactor)
        from proxy.stdio import serve  # noqa: PLC0415  (only once the start is certain: it loads ctypes)

        splice = trace_context == "splice"
        serve(identity, policy, __version__, file, command, redactor, splice=splice, exporter=exporter)
    except ValueError as error:
        say(str(error), redactor)
        sys.exit(getattr(error, "code", 2))


def main(arguments: list[str]) -> None:
    """Run `wiretrap proxy ARGUMENTS`."""
    proxy.main(arguments, prog_name="wiretrap proxy")
