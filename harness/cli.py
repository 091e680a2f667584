"""The `wiretrap` command. It chooses the subcommand before it imports it, since a proxy must start fast."""

import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from proxy import __version__

if TYPE_CHECKING:
    from click import Command

COMMANDS = {
    "approve": "let calls through that wait for an operator",
    "compare": "hold two runs against each other",
    "import": "write runs that were recorded elsewhere as traces",
    "check": "judge recorded traces without running anything",
    "rejudge": "judge the trials of a run folder again",
    "judge-agreement": "hold a judge's opinions against labels by hand",
    "export": "send recorded spans on over OTLP",
    "run": "run scenarios, judge them, and write a run folder",
    "schema": "print the JSON Schema of a kind of file",
    "sweep": "let every agent do every task, so many times, and compare them",
    "selfcheck": "hold scenarios against wrong runs made of their right one",
    "targets": "show what can be seen of each kind of agent, or was in a run",
    "trace": "show recorded calls, as a trace or one line a call",
    "up": "put a proxy in front of several servers at once, from one file",
    "wrap": "put a proxy before every server in a client's configuration",
    "validate": "check the files that people write, without running anything",
}
"""Name and one line of help; each is `command`, a click.Command, in harness.commands.<name>."""

MODULES = {"import": "import_runs", "judge-agreement": "judge_agreement"}
"""Modules of commands whose name is a word of Python's, or none of its names."""

USAGE = """\
Usage: wiretrap COMMAND [ARG]...

  Find out what an AI agent really did: watch the MCP wire, enforce a policy,
  and judge the agent by what crossed the wire and what the databases hold.

Options:
  --version   Show the version and exit.
  -h, --help  Show this message and exit, also behind a COMMAND.

Commands:
"""


def usage() -> str:
    """The text of `wiretrap --help`."""
    lines = {"proxy": "stand between an agent and an MCP server", **COMMANDS}
    return USAGE + "".join(f"  {name:<17}{text}\n" for name, text in sorted(lines.items()))


def main() -> None:
    """Run the subcommand that the first argument names; exit 2 when it names none, and 130 after Ctrl-C."""
    try:
        _run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)


def _run(arguments: list[str]) -> None:
    match arguments[:1]:
        case ["proxy"]:
            import_module("proxy.cli").main(arguments[1:])
        case ["--version"]:
            sys.stdout.write(f"wiretrap {__version__}\n")
        case ["--help" | "-h"]:
            sys.stdout.write(usage())
        case [name] if name in COMMANDS:
            # A tenth of the import is the collector's, which walks again and again what stays anyway.
            gc.disable()
            command = import_module(f"harness.commands.{MODULES.get(name, name)}").command
            gc.freeze()
            gc.enable()
            _play(command, arguments[1:], f"wiretrap {name}")
        case []:
            sys.stderr.write(usage())
            sys.exit(2)
        case [name]:
            sys.stderr.write(f"wiretrap: there is no command {name!r}; `wiretrap --help` lists them\n")
            sys.exit(2)


def _play(command: "Command", arguments: list[str], name: str) -> None:
    """Run a command as click does by itself, but that Ctrl-C is no failure of it."""
    from click import Abort, ClickException  # noqa: PLC0415  (the command has imported it; the proxy has its own)

    try:
        code = command.main(arguments, prog_name=name, standalone_mode=False)
    except ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Abort:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
