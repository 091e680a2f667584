"""Spans made into a trace and judged, in a fresh process: how long it takes, and how much memory.

python -m tests.bench.conversion FOLDER prints seconds, bytes and calls as JSON; `make_spans` fills the folder first.
Refuses to know how that is shown.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

from proxy.policy import Policy, load_policy
from proxy.record import Identity
from proxy.relay import Relay
from proxy.spanfile import SpanFile
from tests.bench.server import answer
from tests.bench.wire import OPENING, call_line, request

SPANS_A_CALL = 2
"""A decision and an exchange."""

ASSERTIONS = """\
id: bench.conversion
title: What is judged in the benchmark
category: task
severity: low
target: {adapter: mcp}
input: {user_message: Say it}
servers: {bench: {command: ["true"]}}
agent: {command: ["true"]}
assertions:
  - {type: tool_called, tool: mcp/bench/echo}
  - {type: tool_not_called, tool: mcp/bench/delete_all}
"""


def make_spans(folder: Path, spans: int, policy: Path) -> None:
    """Record as many spans as asked, within a few, by the proxy's own core."""
    identity = Identity("bench", "internal", "stdio", "c0ffee00c0ffee00", run_id="bench", scenario_id="bench", trial=1)
    rules: Policy = load_policy(str(policy), ())
    relay = Relay(identity, rules, "bench", SpanFile.create(folder, "bench"))
    for line in [request(0, "initialize", OPENING), *map(call_line, range(1, spans // SPANS_A_CALL + 1))]:
        relay.client_line(line)
        relay.server_line(answer(line))
    relay.close("client_ended")


def main() -> None:
    """Convert and judge the spans of a folder."""
    folder = Path(sys.argv[1])
    from harness.convert import convert
    from harness.evidence import Evidence
    from harness.judge import judge
    from harness.scenario import load_scenario
    from proxy.spanread import read_spans

    scenario = load_scenario(folder / "bench.yaml")
    notes: list[str] = []
    began = perf_counter()
    trace = convert(read_spans([folder / "spans"], notes.append), notes=notes)
    converted = perf_counter() - began
    verdict = judge(scenario.assertions, Evidence(trace, True, ("bench",), frozenset({"bench"})), "completed")
    took = perf_counter() - began
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    print(
        json.dumps(
            {
                "convert": converted,
                "seconds": took,
                "bytes": int(peak.split()[1]) * 1024,
                "calls": len(trace.tool_calls),
                "verdict": verdict.result,
            }
        )
    )


if __name__ == "__main__":
    main()
