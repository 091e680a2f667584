"""What was measured as Markdown: tables with ratios, the budgets of the design, and what it was measured on.

Refuses to know how it was measured.
"""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from proxy import __version__
from tests.bench.contestants import DIRECT, OURS, OURS_SCHEMA, RELAY, peer_versions
from tests.bench.rounds import Turns, added, ratio
from tests.bench.sweeps import Swept
from tests.bench.trials import Trials

MB = 1e6
MS = 1e3
NONE = "–"

HOW = """\
Each round measures all of them in turn, so that what else the machine does meets all alike. What is shown is the median
over the rounds; a ratio or a difference is taken within each round first. All stand in front of the same server, over
stdio. Wiretrap enforces a policy of four rules and records everything; a relay looks at nothing.

- First answer: from the start of the process to the answer to `initialize`.
- Call: a `tools/call` and its answer, one after the other; the 95th percentile is of the calls of a round.
- CPU a call: processor time of the process in between.
- Cancel: the most that it took from the client's write of `notifications/cancelled` while a call ran until the server
  had read it.
- Pipelined: calls a second, written without waiting for answers.
- Memory: the most that the process in between has held, without the server.
- Stored: bytes on disk a call.
"""

ABOUT_CONVERSION = """\
In a process of its own each, two spans a call; a tenth of the calls writes a row. The scenario has every family of
assertions: calls and their order, names, recipients, secrets, markers of another tenant, canaries, definitions,
approvals, economy, goals, claims and the database.
"""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Spans made into a trace and judged, in a process of its own: seconds, and bytes of memory at most."""

    spans: int
    convert: float = 0.0
    seconds: float = 0.0
    memory: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """All that was measured; `turns` by the name of the server."""

    turns: dict[str, list[Turns]]
    trials: Sequence[Trials]
    conversions: Sequence[Conversion]
    seconds: float
    sweeps: Sequence[Swept] = ()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _over_rounds(values: Sequence[float], direct: Sequence[float], unit: str, *, scale: float, digits: int) -> str:
    if not values or not direct:
        return NONE
    text = f"{median(values) * scale:,.{digits}f} {unit}".rstrip()
    return text if values is direct else f"{text} ({ratio(values, direct):.2f}×)"


def _row(turns: Turns, direct: Turns) -> tuple[str, ...]:
    if turns.problem:
        return (turns.contestant.name, turns.problem, *[NONE] * 7)
    behind = turns is not direct
    return (
        turns.contestant.name,
        _over_rounds(turns.first, direct.first, "ms", scale=MS, digits=0),
        _over_rounds(turns.middle, direct.middle, "ms", scale=MS, digits=3),
        _over_rounds(turns.tail, direct.tail, "ms", scale=MS, digits=3),
        f"{turns.cpu * MS:.3f} ms" if behind and turns.cpu else NONE,
        f"{max(turns.cancelled) * MS:.2f} ms" if turns.cancelled else NONE,
        _over_rounds(turns.pipelined, direct.pipelined, "/s", scale=1, digits=0),
        f"{turns.memory / MB:.1f} MB" if behind and turns.memory else NONE,
        f"{turns.stored:,.0f} B" if turns.stored else NONE,
    )


def contest(turns: Sequence[Turns]) -> str:
    """The table of all contestants in front of one server."""
    direct = named(turns, DIRECT)
    head = (
        "",
        "first answer",
        "call, median",
        "call, 95 %",
        "CPU a call",
        "cancel",
        "pipelined",
        "memory",
        "stored a call",
    )
    return table(head, (_row(one, direct) for one in turns))


def named(turns: Sequence[Turns], name: str) -> Turns:
    """The contestant of a name."""
    return next(one for one in turns if one.contestant.name == name)


def met(what: str, budget: str, value: float | None, limit: float, text: str, *, at_least: bool = False) -> list[str]:
    if value is None:
        return [what, budget, NONE, "not measured"]
    fine = value >= limit if at_least else value <= limit
    return [what, budget, text.format(value), "met" if fine else "**missed**"]


def _difference(values: Sequence[float], direct: Sequence[float]) -> float | None:
    return added(values, direct) * MS if values and direct else None


def _share(turns: Sequence[Turns]) -> float | None:
    """Per cent of the direct rate that ours has when pipelined."""
    direct, ours = named(turns, DIRECT), named(turns, OURS)
    return ratio(ours.pipelined, direct.pipelined) * 100 if ours.pipelined and direct.pipelined else None


def budgets(results: Results) -> str:
    """The budgets of the design for stdio, trials and conversion, with what was measured."""
    rows = _wire_budgets(results) if results.turns else []
    inside = next((one for one in results.trials if one.transport == "in_process" and not one.problem), None)
    large = next((one for one in results.conversions if one.spans == 100_000 and not one.problem), None)
    rows += [
        met("a scripted trial in one process", "30 ms", inside.rest * MS if inside else None, 30, "{:.0f} ms"),
        met("100,000 spans to trace and verdicts", "10 s", large.seconds if large else None, 10, "{:.1f} s"),
        met("the same, memory", "200 MB", large.memory / MB if large else None, 200, "{:.0f} MB"),
    ]
    return table(("budget", "at most (pipelined: at least)", "measured", ""), rows)


def _wire_budgets(results: Results) -> list[list[str]]:
    turns = results.turns["raw"]
    direct, relay, ours, schema = (named(turns, name) for name in (DIRECT, RELAY, OURS, OURS_SCHEMA))
    slowest = max(ours.cancelled) * MS if ours.cancelled else None
    return [
        met("median call", "0.10 ms more", _difference(ours.middle, direct.middle), 0.10, "{:.3f} ms more"),
        # On the design's machine a byte relay adds 0.02 ms; where pipes are slower, this tells our part.
        met(
            "the same, beyond a byte relay",
            "0.08 ms more",
            _difference(ours.middle, relay.middle),
            0.08,
            "{:.3f} ms more",
        ),
        *[
            met(f"pipelined, {name} server", "90 % of direct", _share(one), 90, "{:.0f} %", at_least=True)
            for name, one in results.turns.items()
        ],
        met("first answer", "150 ms later", _difference(ours.first, direct.first), 150, "{:.0f} ms later"),
        met(
            "first answer, a rule with `arguments`",
            "250 ms later",
            _difference(schema.first, direct.first),
            250,
            "{:.0f} ms later",
        ),
        met("a cancellation reaches the server", "50 ms", slowest, 50, "{:.2f} ms"),
        met("memory", "25 MB", ours.memory / MB or None, 25, "{:.1f} MB"),
    ]


def trial_table(trials: Sequence[Trials]) -> str:
    """What a scripted trial takes."""
    rows = [
        (one.transport, one.problem, *[NONE] * 4)
        if one.problem
        else (
            one.transport,
            str(one.count),
            f"{one.first * MS:,.0f} ms",
            f"{one.rest * MS:,.0f} ms",
            f"{one.run:.1f} s",
            f"{one.cpu * MS:,.0f} ms",
        )
        for one in trials
    ]
    return table(("agent over", "trials", "the first", "median of the others", "whole run", "CPU a trial"), rows)


def sweep_table(sweeps: Sequence[Swept]) -> str:
    """What a sweep takes."""
    rows = [
        (str(one.jobs), one.problem, NONE, NONE)
        if one.problem
        else (str(one.jobs), str(one.trials), f"{one.seconds:.1f} s", f"{one.cpu * MS:,.0f} ms")
        for one in sweeps
    ]
    return table(("jobs", "trials", "whole sweep", "CPU a trial"), rows)


def conversion_table(conversions: Sequence[Conversion]) -> str:
    """What it takes to make spans into a trace and to judge it."""
    rows = [
        (f"{one.spans:,}", one.problem, NONE, NONE)
        if one.problem
        else (f"{one.spans:,}", f"{one.convert:.2f} s", f"{one.seconds:.2f} s", f"{one.memory / MB:.0f} MB")
        for one in conversions
    ]
    return table(("spans", "trace", "trace and verdict", "memory"), rows)


def processor() -> str:
    """The processor's name, "" where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def page(results: Results) -> str:
    """The whole page."""
    most = max((len(one.middle) for one in results.turns.get("raw", ())), default=0)
    machine = f"{os.cpu_count()} cores ({processor()}), {platform.system()} {platform.release()}"
    on = f"{datetime.now(UTC):%Y-%m-%d}, {machine}, Python {platform.python_version()}"
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    parts = [
        "# How fast\n",
        f"Measured by `make bench` on {on}; load average at the end {load}.\n"
        f"Wiretrap {__version__}, {peer_versions()}. {most} rounds of calls in {results.seconds:.0f} s.\n",
        HOW,
        "## Budgets\n",
        budgets(results),
    ]
    said = {"raw": "In front of the cheapest server there is", "SDK": "In front of a server by the Python SDK"}
    for name, turns in results.turns.items():
        parts += [f"## {said[name]}\n", contest(turns)]
    parts += [
        "## A scripted trial\n",
        "Two servers with their databases, proxies, an agent of three calls, dumps and checks, by `wiretrap run`.\n"
        "Over stdio each trial starts the servers anew, and each loads the SDK.\n",
        trial_table(results.trials),
        "## A sweep\n",
        "Four architectures over a scripted model, in process, on both support tasks, five trials each.\n",
        sweep_table(results.sweeps),
        "## Spans to a trace and a verdict\n",
        ABOUT_CONVERSION,
        conversion_table(results.conversions),
    ]
    return "\n".join(parts)
