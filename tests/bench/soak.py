"""`make soak`: 100,000 calls over one connection, and 200 at once answered out of order. Figures, and an exit code.

It ends by itself: each step has its time, and a proxy that takes longer is ended.
"""

import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from proxy import vocabulary as v
from proxy.spanread import read_spans
from tests.bench.contestants import OURS, SERVERS, contestants, environment
from tests.bench.rounds import folder_size
from tests.bench.wire import Wire

CALLS = 100_000
STEP = 1_000
"""Calls that are written without waiting."""
SHOWN = (1_000, 10_000, 50_000, 100_000)
STEP_TIME = 60.0
MOST_GROWTH = 2_000_000
"""Bytes that the proxy may grow by from 10,000 calls to 100,000; one kept call each would be some 50 MB."""
PARALLEL = 200

SHUFFLER = """\
import json, os, random, sys
from threading import Timer
held, waiting = b"", []
while chunk := os.read(0, 1 << 18):
    *lines, held = (held + chunk).split(b"\\n")
    for line in lines:
        message = json.loads(line)
        if message["method"] == "tools/call":
            text = message["params"]["arguments"]["message"]
            waiting.append({"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})
        elif "id" in message:
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            os.write(1, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": params}).encode() + b"\\n")
    if len(waiting) == int(sys.argv[1]):
        random.Random(1).shuffle(waiting)
        for answer in waiting:
            os.write(1, json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\\n")
        waiting.clear()
"""
"""A server that answers nothing until it has all calls, and then in an order of its own."""


def started(folder: Path, server: tuple[str, ...]) -> Wire:
    """Our proxy in front of a server."""
    ours = next(one for one in contestants() if one.name == OURS)
    folder.mkdir()
    wire = Wire.start(ours.command(folder, server), folder, environment(folder))
    with wire.within(STEP_TIME):
        wire.initialize()
    return wire


def many(folder: Path) -> bool:
    """100,000 calls over one connection; whether memory stayed flat and every call is in the spans."""
    wire = started(folder, SERVERS["raw"])
    sizes: dict[int, int] = {}
    began = perf_counter()
    try:
        for done in range(STEP, CALLS + 1, STEP):
            with wire.within(STEP_TIME):
                wire.pipeline(STEP)
            if done in SHOWN:
                sizes[done] = wire.memory()
                took = perf_counter() - began
                print(f"{done:>7,} calls: {sizes[done] / 1e6:.2f} MB, {took:.1f} s, CPU {wire.cpu():.1f} s", flush=True)
        print(f"  peak {wire.peak_memory() / 1e6:.2f} MB")
    finally:
        wire.end()
    recorded = answered_calls(folder / "spans")
    print(f"  {recorded:,} answered calls in {folder_size(folder / 'spans') / 1e6:.0f} MB of spans")
    return sizes[CALLS] - sizes[10_000] <= MOST_GROWTH and recorded == CALLS


def answered_calls(spans: Path) -> int:
    """How many recorded calls have the answer that belongs to their arguments."""
    notes: list[str] = []
    return sum(
        json.loads(str(span.attributes[v.TOOL_RESULT]))["content"][0]["text"]
        == json.loads(str(span.attributes[v.TOOL_ARGUMENTS]))["message"]
        for span in read_spans([spans], notes.append)
        if v.TOOL_RESULT in span.attributes
    )


def parallel(folder: Path) -> bool:
    """200 calls at once, answered in another order; whether each got its own answer, on the wire and in the spans."""
    wire = started(folder, (sys.executable, "-S", "-E", "-c", SHUFFLER, str(PARALLEL)))
    try:
        with wire.within(STEP_TIME):
            wire.pipeline(PARALLEL)
    finally:
        wire.end()
    recorded = answered_calls(folder / "spans")
    print(f"{PARALLEL} calls at once, answered out of order: {recorded} have their own answer in the spans")
    return recorded == PARALLEL


def main() -> int:
    """Both; 1 where one is not as it should be."""
    with tempfile.TemporaryDirectory(prefix="wiretrap-soak-") as name:
        fine = [parallel(Path(name) / "parallel"), many(Path(name) / "many")]
    print("as it should be" if all(fine) else "NOT as it should be")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
