"""`make bench`, over HTTP: direct, Wiretrap and FastMCP's proxy in turns in front of the cheapest server.

Refuses to know how a call is made. Prints a section of the page, and with `--append FILE` adds it there.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from time import monotonic_ns, sleep

from tests.bench.contestants import ALLOW, RULES, WIRETRAP, environment
from tests.bench.http_wire import HttpWire, Process, message_of, raw_server
from tests.bench.page import met, table
from tests.bench.rounds import added, ratio
from tests.bench.wire import WireError
from tests.peers.places import is_made, program

ROUNDS, CALLS = 12, 100
LARGE_ROUNDS, LARGE = 5, 20_000_000
HUGE = 200_000_000
EVENTS = 100
GONE = 10

FASTMCP = """\
import socket, sys
from fastmcp.server import create_proxy
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
print(port, flush=True)
create_proxy(sys.argv[1], name="bench").run(
    transport="http", host="127.0.0.1", port=port, path="/mcp", show_banner=False,
    stateless_http=True, json_response=True
)
"""


@dataclass(slots=True)
class Row:
    """What was measured of one way to the server: seconds, a number a round, and bytes of memory at most."""

    name: str
    process: Process | None = None
    wire: HttpWire | None = None
    middle: list[float] = field(default_factory=list)
    tail: list[float] = field(default_factory=list)
    large: list[float] = field(default_factory=list)
    events: list[float] = field(default_factory=list)
    gone: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    cpu: float = 0.0
    before: int = 0
    after: int = 0
    huge: int = 0
    problem: str = ""
    slowness: int = 1


def say(text: str) -> None:
    """Tell the person who waits what is being measured."""
    sys.stderr.write(f"bench: HTTP, {text}\n")
    sys.stderr.flush()


def trying(row: Row, step: Callable[[Row], None]) -> None:
    """Take a step with a row that is still in; one that fails is out, and says why."""
    if row.problem:
        return
    try:
        step(row)
    except (WireError, OSError, ValueError) as error:
        row.problem = f"{type(error).__name__}: {error}"[:120].replace("|", "/")


def opened(port: int) -> HttpWire:
    """A connection with a handshake, as soon as somebody listens."""
    for _ in range(300):
        try:
            wire = HttpWire(port)
            break
        except ConnectionRefusedError:
            sleep(0.1)
    else:
        raise WireError("nobody listens")
    wire.initialize()
    return wire


def ours(folder: Path, url: str) -> tuple[str, ...]:
    """The command of our proxy, with a policy in force."""
    folder.mkdir(parents=True, exist_ok=True)
    policy = folder / "policy.yaml"
    policy.write_text(RULES + ALLOW, encoding="utf-8")
    options = ("--quiet", "--server", "bench", "--policy", str(policy), "--spans", str(folder / "spans"))
    return (WIRETRAP, "proxy", "http", "--url", url, "--port", "0", *options)


def calls(row: Row) -> None:
    """One round of calls."""
    assert row.wire is not None
    times = [row.wire.call() for _ in range(CALLS // row.slowness)]
    row.middle.append(median(times))
    row.tail.append(quantiles(times, n=20)[-1])


def large(row: Row) -> None:
    """One large result."""
    assert row.wire is not None
    row.large.append(row.wire.large(LARGE))
    sleep(0.7)  # the record of it is not to fall into another's turn


def gone(row: Row, server: HttpWire) -> None:
    """Go away before the head and in mid-stream; how long the server takes to learn of it."""
    for stream in (False, True):
        assert row.wire is not None
        wire = HttpWire(row.wire.port, session=row.wire.session)
        wire.tool("hang", {"stream": stream})
        if stream:
            wire.connection.recv(1 << 16)
        sleep(0.05)
        left = monotonic_ns()
        wire.close()
        for _ in range(200):
            sleep(0.01)
            server.tool("left", {})
            result = message_of(server.answer()[2])["result"]
            assert isinstance(result, dict)
            moment = result["left"]
            assert isinstance(moment, int)
            if moment > left:
                row.gone[stream].append((moment - left) / 1e9)
                break
        else:
            raise WireError("the server never learned that the client went")


def measure(folder: Path) -> list[Row]:
    """All of them, in turns."""
    variables = environment(folder)
    server = raw_server(folder / "server", variables)
    url = f"http://127.0.0.1:{server.port}/mcp"
    rows = [Row("direct"), Row("wiretrap"), Row("FastMCP's proxy, no record", slowness=5)]
    control = HttpWire(server.port)
    try:
        commands: dict[str, tuple[str, ...]] = {"wiretrap": ours(folder / "ours", url)}
        if is_made("fastmcp"):
            commands[rows[2].name] = (program("fastmcp", "python"), "-c", FASTMCP, url)
        else:
            rows[2].problem = "not measured (make peers)"

        def start(row: Row) -> None:
            if row.name in commands:
                row.process = Process.start(commands[row.name], folder / row.name[:4], variables)
            row.wire = opened(server.port if row.process is None else row.process.port)
            calls(row)
            row.middle.clear()
            row.tail.clear()

        for row in rows:
            trying(row, start)
        used = {row.name: row.process.cpu() for row in rows if row.process is not None}
        say("calls")
        for number in range(ROUNDS):
            for at in range(len(rows)):
                trying(rows[(number + at) % len(rows)], calls)
        for row in rows:
            if row.process is not None and row.middle:
                row.cpu = (row.process.cpu() - used[row.name]) / (ROUNDS * (CALLS // row.slowness))
                row.before = row.process.memory("VmHWM")
        first = [row for row in rows if row.name != rows[2].name]
        for row in first:
            trying(row, lambda row: row.events.extend(row.wire.events(EVENTS) if row.wire is not None else []))
            if row.wire is not None:
                row.wire.close()
                row.wire = opened(row.wire.port)
        say("clients that go away")
        for _ in range(GONE):
            for row in first:
                trying(row, lambda row: gone(row, control))
        say("large results")
        for number in range(LARGE_ROUNDS):
            for at in range(len(first)):
                trying(first[(number + at) % len(first)], large)
        for row in first:
            if row.process is not None and not row.problem:
                row.after = row.process.memory("VmHWM")
                assert row.wire is not None
                row.wire.large(HUGE)
                row.huge = row.process.memory("VmHWM")
        # FastMCP's proxy reads a large result whole, twice; one is enough to see that.
        trying(rows[2], large)
    finally:
        control.close()
        for row in rows:
            if row.wire is not None:
                row.wire.close()
            if row.process is not None:
                row.process.end()
        server.end()
    return rows


def _ms(values: Sequence[float], direct: Sequence[float], digits: int = 3) -> str:
    if not values:
        return "–"
    text = f"{median(values) * 1e3:,.{digits}f} ms"
    return text if values is direct or not direct else f"{text} ({ratio(values, direct):.2f}×)"


def section(rows: Sequence[Row]) -> str:
    """The section of the page."""
    direct = rows[0]
    head = ("", "call, median", "call, 95 %", "CPU a call", "20 MB result", "memory", "after 20 MB", "after 200 MB")
    lines = [
        (row.name, row.problem, *["–"] * 6)
        if row.problem and not row.middle
        else (
            row.name + (f" ({row.problem})" if row.problem else ""),
            _ms(row.middle, direct.middle),
            _ms(row.tail, direct.tail),
            f"{row.cpu * 1e3:.3f} ms" if row.cpu else "–",
            _ms(row.large, direct.large, 0),
            *[f"{size / 1e6:.0f} MB" if size else "–" for size in (row.before, row.after, row.huge)],
        )
        for row in rows
    ]
    ends = ("", "event, median", "event, 95 %", "event, most", "gone before the head, most", "gone in mid-stream, most")
    streams = [
        (
            row.name,
            f"{median(row.events) * 1e3:.2f} ms",
            f"{quantiles(row.events, n=20)[-1] * 1e3:.2f} ms",
            f"{max(row.events) * 1e3:.2f} ms",
            f"{max(row.gone[False]) * 1e3:.1f} ms",
            f"{max(row.gone[True]) * 1e3:.1f} ms",
        )
        for row in rows
        if row.events and row.gone[True]
    ]
    mine = rows[1]
    more = added(mine.middle, direct.middle) * 1e3 if mine.middle else None
    times = ratio(mine.large, direct.large) if mine.large else None
    budgets = [
        met("median call", "0.5 ms more", more, 0.5, "{:.3f} ms more"),
        met("a 20 MB result", "2× direct", times, 2, "{:.2f}×"),
    ]
    return "\n".join(
        [
            "## Over HTTP\n",
            f"In front of the cheapest server over HTTP, over one connection each; {ROUNDS} rounds of {CALLS} calls\n"
            f"(FastMCP's proxy: a fifth), {LARGE_ROUNDS} large results. Memory is the most that the process in between "
            "has held;\nresults of up to 16 MiB are recorded whole, of longer ones the beginning.\n",
            table(("budget", "at most", "measured", ""), budgets),
            table(head, lines),
            "From the writing of an event to its arrival, and from the client's going to the server's notice:\n",
            table(ends, streams),
        ]
    )


def main() -> None:
    """Measure, print, and append where it is said to."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.http", description=__doc__)
    parser.add_argument("--append", type=Path, metavar="FILE", help="add the section to this page too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wiretrap-bench-") as name:
        text = section(measure(Path(name)))
    sys.stdout.write(text)
    if options.append is not None:
        with options.append.open("a", encoding="utf-8") as page:
            page.write(f"\n{text}")


if __name__ == "__main__":
    main()
