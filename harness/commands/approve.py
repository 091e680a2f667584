"""`wiretrap approve`: an operator's desk, and the answers to the calls that wait at it.

Refuses to know how a call is held, and which answer counts.
"""

import sys
import time

import click

from proxy.deskline import DeskError, ask_desk
from proxy.deskserve import DeskServer, keep_private, listen, show_on_terminal
from proxy.grants import GrantError, LedgerError, load_grants
from proxy.spans import JSON
from proxy.visible import visible

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("approve", context_settings=_HELP)
def command() -> None:
    """Approve calls that a policy says `approve` of, one at a time.

    Start `listen DIR` on a terminal that is yours alone, and give the proxy `--approvals DIR`. Each call that waits is
    shown there with its id and a one-time code. Answer it from another terminal of yours. Who was started from where
    the agent was is refused; an agent that runs as another user cannot even come this far (docs/approvals.md).
    """


@command.command("listen", context_settings=_HELP)
@click.argument("folder", metavar="DIR")
def listen_at(folder: str) -> None:
    """Show on this terminal which calls wait, each with its code, until Ctrl-C.

    DIR is made where it is missing, for its user alone. The codes go to a terminal and nowhere else.
    """
    if not sys.stdout.isatty():
        raise click.UsageError("codes are shown on a terminal alone, and stdout is none")
    try:
        listening = listen(folder)
    except DeskError as error:
        raise click.ClickException(visible(str(error))) from None
    keep_private()
    desk = DeskServer(listening, show_on_terminal)
    click.echo(f"calls that wait for an approval are shown here; --approvals {visible(folder)} asks for one")
    try:
        desk.serve()
    finally:
        desk.close(folder)


@command.command("list", context_settings=_HELP)
@click.argument("folder", metavar="DIR")
def list_pending(folder: str) -> None:
    """Print which calls wait at the desk in DIR, without their codes."""
    answer = _ask(folder, {"list": True})
    lines = answer.get("pending")
    for line in lines if isinstance(lines, list) else []:
        click.echo(visible(str(line)))


@command.command("grant", context_settings=_HELP)
@click.argument("folder", metavar="DIR")
@click.argument("call_id", metavar="ID")
def grant(folder: str, call_id: str) -> None:
    """Let one call that waits go on. Its code is asked for here, or read as a line of stdin."""
    _answer(folder, "grant", call_id)


@command.command("deny", context_settings=_HELP)
@click.argument("folder", metavar="DIR")
@click.argument("call_id", metavar="ID")
def deny(folder: str, call_id: str) -> None:
    """Refuse one call that waits. Its code is asked for here, or read as a line of stdin."""
    _answer(folder, "deny", call_id)


@command.command("revoke", context_settings=_HELP)
@click.argument("file", metavar="FILE")
@click.argument("grant_id", metavar="ID")
def revoke(file: str, grant_id: str) -> None:
    """Take back a grant of a file (`--grants FILE`) that is not used yet, also for proxies that run."""
    try:
        click.echo(visible(load_grants(file).revoke(grant_id, time.time_ns())))
    except (GrantError, LedgerError) as error:
        raise click.ClickException(visible(str(error))) from None


def _answer(folder: str, verdict: str, call_id: str) -> None:
    # Never an argument or a variable: those the agent may read.
    code = click.prompt("code", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    answer = _ask(folder, {"answer": verdict, "id": call_id, "code": str(code).strip()})
    click.echo(visible(str(answer.get("done", ""))))


def _ask(folder: str, said: dict[str, JSON]) -> dict[str, JSON]:
    try:
        answer = ask_desk(folder, said)
    except DeskError as error:
        raise click.ClickException(visible(str(error))) from None
    if "error" in answer:
        raise click.ClickException(visible(str(answer["error"])))
    return answer
