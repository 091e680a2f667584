"""Spans made into a trace and judged, in a fresh process: how long it takes, and how much memory.

python -m tests.bench.conversion FOLDER SPANS prints seconds, bytes and calls as JSON; `tests.bench.judged` fills the
folder first.
Refuses to know how that is shown.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

from tests.bench.judged import CANARIES, SPANS_A_CALL, state


def main() -> None:
    """Convert and judge the spans of a folder."""
    folder = Path(sys.argv[1])
    from harness.casefile import evidence_of
    from harness.convert import convert
    from harness.judge import judge
    from harness.scenario import load_scenario
    from proxy.spanread import read_spans

    scenario = load_scenario(folder / "bench.yaml")
    held = state(int(sys.argv[2]) // SPANS_A_CALL)
    notes: list[str] = []
    began = perf_counter()
    trace = convert(read_spans([folder / "spans"], notes.append), notes=notes)
    converted = perf_counter() - began
    evidence = evidence_of(scenario, trace, completed=True, state=held, environment={}, canaries=CANARIES)
    verdict = judge(scenario.assertions, evidence, "completed")
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
                "reason": verdict.reason,
            }
        )
    )


if __name__ == "__main__":
    main()
