"""Runs that are killed at some record, gone on with, and compared with one that was not: `make resume KILLS=20`."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from proxy.spans import JSON
from tests.harness.runs import write_scenario

DEADLINE = 60.0
_ID = re.compile(r"[0-9a-f]{16,32}|\d{8}T\d{6}Z-[0-9a-f]{4}")
_TIMES = frozenset(
    {"seconds", "started_at", "ended_at", "resumed_at", "duration_ms", "time", "run_id", "kept", "latency"}
)


def write_scenarios(folder: Path, agent: str = "in_process", trials: int = 2) -> list[Path]:
    """Two small scenarios of two trials, one of which fails."""
    calls: list[JSON] = [
        {"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}},
        {"call": "mcp/ticketing/update_ticket", "arguments": {"ticket_id": 1, "status": "closed"}},
        {"say": "Closed."},
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.yaml").write_text(json.dumps({"transport": agent, "steps": calls}))
    wanted: dict[str, JSON] = {"closes": [["closed"], ["open"]], "fails": [["open"], ["open"]]}
    return [
        write_scenario(
            folder,
            id=name,
            trials=trials,
            servers={"ticketing": {"fixture": "ticketing", "trust": "internal"}},
            agent={"scripted": "agent.yaml"},
            assertions=[
                {"type": "tool_called", "tool": "mcp/ticketing/update_ticket"},
                {"type": "state", "server": "ticketing", "query": "select status from tickets", "equals": rows},
            ],
        )
        for name, rows in wanted.items()
    ]


def start(paths: list[Path], out: Path) -> "subprocess.Popen[bytes]":
    """Start a run in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.cli", "run", *map(str, paths), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def resume(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Go on with a run, to its end."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", "run", "--resume", str(folder), *options],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def records(out: Path) -> int:
    """How many spans, verdicts and results there are so far."""
    files = [*out.glob("*/*/[0-9]*/spans/*.jsonl"), *out.glob("*/results.ndjson")]
    total = len(list(out.glob("*/*/[0-9]*/verdict.json")))
    for file in files:
        try:
            total += file.read_bytes().count(b"\n")
        except OSError:
            continue
    return total


def children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            yield from map(int, task.read_text().split())


def kill_at(process: "subprocess.Popen[bytes]", out: Path, record: int, *, workers: bool) -> bool:
    """SIGKILL to the run once there are so many records, and to its workers with it; false where it ended before."""
    end = time.monotonic() + DEADLINE
    while records(out) < record or not list(out.glob("*/manifest.json")):
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                raise AssertionError(f"there are only {records(out)} records") from None
        else:
            return False
    below = list(children(process.pid)) if workers else []
    process.kill()
    for pid in below:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
    return True


def run_folder(out: Path) -> Path:
    (folder,) = [path for path in out.iterdir() if path.is_dir()]
    return folder


def left(folder: Path) -> dict[str, JSON]:
    """What a run left, without ids and times: the reports, and of each trial its verdict, trace and dumps."""
    found: dict[str, JSON] = {}
    for path in sorted(folder.rglob("*")):
        place = str(path.relative_to(folder))
        if not path.is_file() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        if path.name in ("report.json", "verdict.json", "trace.json", "manifest.json"):
            found[place] = _bare(json.loads(path.read_text()))
        elif path.parent.name == "state":
            found[place] = _ID.sub("ID", path.read_text())
        elif path.name == "results.ndjson":
            results: list[JSON] = [_bare(json.loads(line)) for line in path.read_text().splitlines()]
            found[place] = sorted(results, key=json.dumps)
        else:
            found[re.sub(r"\.\d+\.[0-9a-f]{8}", "", place)] = None
    return found


def differing(one: dict[str, JSON], other: dict[str, JSON]) -> list[str]:
    """The files in which two runs differ."""
    return [name for name in sorted({*one, *other}) if name not in one or name not in other or one[name] != other[name]]


def _bare(value: JSON) -> JSON:
    match value:
        case dict():
            return {key: _bare(item) for key, item in value.items() if key not in _TIMES}
        case list():
            return [_bare(item) for item in value]
        case str():
            return _ID.sub("ID", value)
        case _:
            return value


def main(kills: int, seed: int) -> None:
    """Kill and go on, so often, and say where; ends with 1 at the first difference."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="wiretrap-resume-") as name:
        folder = Path(name)
        paths = write_scenarios(folder / "scenarios")
        start(paths, folder / "whole").wait()
        whole = left(run_folder(folder / "whole"))
        most = records(folder / "whole")
        for number in range(kills):
            record, workers, out = draw.randint(0, most), draw.random() < 0.5, folder / f"out{number}"
            process = start(paths, out)
            killed = kill_at(process, out, record, workers=workers)
            ran = resume(run_folder(out))
            wrong = differing(whole, left(run_folder(out)))
            words = f"record {record} of {most}, {'with' if workers else 'without'} its workers"
            print(f"{'killed' if killed else 'ended before'} {words}: {wrong or 'equal'}")
            if wrong:
                sys.exit(f"{ran.stdout}{ran.stderr}")
            shutil.rmtree(out)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
