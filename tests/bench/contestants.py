"""What is measured against each other: ways to put something, or nothing, in front of the same server.

Refuses to know how they are measured.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.peers.places import is_made, pinned, place, program

HERE = Path(__file__).parent
WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))

Command = tuple[str, ...]

DIRECT = "direct"
RELAY = "byte relay"
OURS = "wiretrap"
OURS_SCHEMA = "wiretrap, a rule with `arguments`"

RULES = """\
mode: enforce
default: deny
rules:
  - {deny: mcp/bench/delete_*, reason: nothing is deleted}
  - {deny: mcp/*/send_*, trust: [untrusted]}
  - {deny: "mcp/bench/resource:file:///etc/*"}
"""
SCHEMA_RULE = """\
  - deny: mcp/bench/echo
    arguments: {required: [message], properties: {message: {const: what nobody says}}}
"""
ALLOW = "  - {allow: mcp/bench/*}\n"

FASTMCP = """\
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
create_proxy(StdioTransport(sys.argv[1], sys.argv[2:]), name="bench").run(show_banner=False)
"""

SERVERS: dict[str, Command] = {
    "raw": (sys.executable, "-S", "-E", str(HERE / "server.py")),
    "SDK": (sys.executable, "-P", str(HERE / "sdk_server.py")),
}
"""The servers that all stand in front of: the cheapest possible, and the same by the SDK."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way. `command` makes the command line from a folder of its own and the server's command.

    `stored` is the folder, below its own, where it writes what it records; "" where it records nothing. `missing` says
    why it cannot take part. One with a `slowness` makes that many times fewer calls a round, so that it takes no more
    time than the others. `cancels`: it passes a cancellation on under the id that the client gave.
    """

    name: str
    command: Callable[[Path, Command], Command]
    stored: str = ""
    missing: str = ""
    slowness: int = 1
    cancels: bool = True


def environment(folder: Path) -> dict[str, str]:
    """Ours, with a home of its own, so that nothing is read from or left in somebody's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WIRETRAP_", "XDG_", "COV"))}
    quiet = {"FASTMCP_CHECK_FOR_UPDATES": "off", "FASTMCP_LOG_LEVEL": "ERROR", "NO_COLOR": "1"}
    return {**kept, **quiet, "HOME": str(folder)}


def _direct(_folder: Path, server: Command) -> Command:
    return server


def _relay(_folder: Path, server: Command) -> Command:
    return (sys.executable, "-S", "-E", str(HERE / "relay.py"), *server)


def _ours(rules: str) -> Callable[[Path, Command], Command]:
    def command(folder: Path, server: Command) -> Command:
        policy = folder / "policy.yaml"
        policy.write_text(rules, encoding="utf-8")
        options = ("--quiet", "--server", "bench", "--policy", str(policy), "--spans", str(folder / "spans"))
        return (WIRETRAP, "proxy", "stdio", *options, *server)

    return command


def _greenlight(*options: str) -> Callable[[Path, Command], Command]:
    def command(folder: Path, server: Command) -> Command:
        logs = ("--log-dir", str(folder / "logs"))
        return (program("greenlight", "greenlight"), "run", "--name", "bench", *logs, *options, "--", *server)

    return command


def _fastmcp(_folder: Path, server: Command) -> Command:
    return (program("fastmcp", "python"), "-c", FASTMCP, *server)


def _missing(peer: str) -> str:
    return "" if is_made(peer) else f"not measured: {place(peer).name} is not there (make peers)"


def contestants() -> list[Contestant]:
    """All of them, in the order in which they take their turns."""
    greenlight, fastmcp = _missing("greenlight"), _missing("fastmcp")
    return [
        Contestant(DIRECT, _direct),
        Contestant(RELAY, _relay),
        Contestant(OURS, _ours(RULES + ALLOW), "spans"),
        Contestant(OURS_SCHEMA, _ours(RULES + SCHEMA_RULE + ALLOW), "spans"),
        Contestant("greenlight, metadata only", _greenlight(), "logs", greenlight),
        Contestant("greenlight, with payloads", _greenlight("--capture-payloads"), "logs", greenlight),
        Contestant("FastMCP's proxy, no record", _fastmcp, "", fastmcp, slowness=5, cancels=False),
    ]


def peer_versions() -> str:
    """The versions of what is not ours."""
    return f"greenlight-mcp {pinned('greenlight', 'greenlight-mcp')}, fastmcp {pinned('fastmcp', 'fastmcp')}"
