"""The options that every `wiretrap proxy` command has, as click and type checkers know them.

Refuses to know what they come to.
"""

from collections.abc import Callable
from typing import TypedDict, TypeVar

import click

from proxy.policy import TRUST_LABELS

_F = TypeVar("_F", bound=Callable[..., None])

_SERVER = (
    click.option("--server", required=True, metavar="ID", help="The server's id: letters, digits, '.', '_' and '-'."),
    click.option(
        "--trust",
        type=click.Choice(TRUST_LABELS),
        default="third_party",
        show_default=True,
        help="How far the server is trusted; policy rules may ask for it.",
    ),
    click.option(
        "--faults",
        "faults_file",
        type=click.Path(),
        metavar="FILE",
        help="Faults that calls are to meet (docs/faults.md): errors, lost or late answers.",
    ),
)
_COMMON = (
    click.option("--policy", "policy_file", type=click.Path(), metavar="FILE", help="A policy file (docs/policy.md)."),
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
        "--otlp",
        metavar="URL",
        help="Send a copy of the record on as it is written: http(s):// over HTTP, grpc(s):// over gRPC.",
    ),
    click.option(
        "--trace-context",
        type=click.Choice(("pass", "splice")),
        default="pass",
        show_default=True,
        help="splice: write our span id over the parent id in `_meta.traceparent`; the server's spans nest in ours.",
    ),
    click.option(
        "--grants",
        "grants_file",
        type=click.Path(),
        metavar="FILE",
        help="Approvals made beforehand, for calls that the policy says `approve` of (docs/approvals.md).",
    ),
    click.option(
        "--approvals",
        type=click.Path(),
        metavar="DIR",
        help="The folder where `wiretrap approve listen DIR` asks an operator for approvals.",
    ),
    click.option("--quiet", is_flag=True, help="Do not say at the start what is watched, and where the record goes."),
)


class Common(TypedDict):
    """The values of the options that speak of no one server."""

    policy_file: str | None
    deny: tuple[str, ...]
    spans: str | None
    context_file: str | None
    otlp: str | None
    trace_context: str
    grants_file: str | None
    approvals: str | None
    quiet: bool


class Shared(Common):
    """The values of the options of a command for one server."""

    server: str
    trust: str
    faults_file: str | None


def shared(command: _F) -> _F:
    """Give a command the shared options, for one server."""
    for option in reversed((*_SERVER, *_COMMON)):
        command = option(command)
    return command


def common(command: _F) -> _F:
    """Give a command those of them that speak of no one server."""
    for option in reversed(_COMMON):
        command = option(command)
    return command
