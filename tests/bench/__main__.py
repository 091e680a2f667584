"""`make bench`: measure, print the page, and write it where `--write FILE` says. Ends by itself within five minutes."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from tests.bench.contestants import ALLOW, RULES, SERVERS, contestants, environment
from tests.bench.judged import SCENARIO, make_spans
from tests.bench.page import Conversion, Results, page
from tests.bench.rounds import Plan, Rounds, Turns
from tests.bench.sweeps import Swept, run_sweep
from tests.bench.trials import Trials, run_trials
from tests.peers.places import ROOT

PARTS = ("trials", "sweep", "stdio", "conversion")
CONVERSIONS = (1_000, 10_000, 100_000)
CONVERSION_TIME = 60.0
"""Seconds that one conversion may take."""


def say(text: str) -> None:
    """Tell the person who waits what is being measured."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def contest(name: str, folder: Path, plan: Callable[[float], Plan], until: float) -> list[Turns]:
    """All contestants in front of the server of a name, until about `until`."""
    say(f"calls in front of the {name} server")
    return Rounds(contestants(), SERVERS[name], folder, plan(until)).measure()


def raw_plan(until: float) -> Plan:
    """What is measured in front of the raw server."""
    return Plan(starts=7, rounds=20, calls=100, pipelines=5, pipelined=2000, until=until, cancels=20)


def sdk_plan(until: float) -> Plan:
    """What is measured in front of the SDK's server, whose own start says nothing of ours."""
    return Plan(starts=0, rounds=10, calls=50, pipelines=3, pipelined=500, until=until)


def conversions(folder: Path, until: float) -> Iterator[Conversion]:
    """Spans to a trace and a verdict, each in a fresh process."""
    policy = folder / "policy.yaml"
    policy.write_text(RULES + ALLOW, encoding="utf-8")
    for spans in CONVERSIONS:
        if monotonic() > until:
            yield Conversion(spans, problem="not measured: no time was left")
            continue
        say(f"{spans:,} spans to a trace")
        room = folder / str(spans)
        make_spans(room / "spans", spans, policy)
        (room / "bench.yaml").write_text(SCENARIO, encoding="utf-8")
        command = [sys.executable, "-m", "tests.bench.conversion", str(room), str(spans)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment(room), capture_output=True, text=True, timeout=CONVERSION_TIME,
                check=True,
            )  # fmt: skip
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
            yield Conversion(spans, problem=f"failed: {error} {said[-200:]}")
            continue
        told = json.loads(done.stdout)
        problem = "" if told["verdict"] == "pass" else f"failed: the verdict is {told['verdict']}: {told['reason']}"
        yield Conversion(spans, told["convert"], told["seconds"], told["bytes"], problem)


def trials(folder: Path, until: float) -> Iterator[Trials]:
    """Scripted trials, in process and over stdio."""
    for transport, count in (("in_process", 15), ("stdio", 3)):
        say(f"trials over {transport}")
        if monotonic() > until:
            yield Trials(transport, problem="not measured: no time was left")
        else:
            yield run_trials(transport, count, folder)


def sweeps(folder: Path) -> Iterator[Swept]:
    """A sweep, with one worker and with two."""
    for jobs in (1, 2):
        say(f"a sweep with --jobs {jobs}")
        yield run_sweep(jobs, folder)


def main() -> None:
    """Measure all and print the page."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there too")
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="measure only this part; may come more than once"
    )
    options = parser.parse_args()
    parts = options.only or PARTS
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="wiretrap-bench-") as name:
        folder = Path(name)
        tried = list(trials(folder, began + 30)) if "trials" in parts else []
        swept = list(sweeps(folder)) if "sweep" in parts else []
        turns: dict[str, list[Turns]] = {}
        if "stdio" in parts:
            turns["raw"] = contest("raw", folder / "raw", raw_plan, began + 150)
            turns["SDK"] = contest("SDK", folder / "sdk", sdk_plan, began + 200)
        converted = list(conversions(folder, began + 220)) if "conversion" in parts else []
        text = page(Results(turns, tried, converted, monotonic() - began, swept))
    sys.stdout.write(text)
    if options.write is not None:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
