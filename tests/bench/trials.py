"""A scripted trial with its servers, databases, proxy and checks, as `wiretrap run` times it.

Refuses to know how that is shown.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from proxy.spans import JSON
from tests.bench.contestants import WIRETRAP, environment
from tests.peers.places import ROOT

SCENARIO = ROOT / "scenarios" / "support" / "credit_hold_escalation.yaml"
AGENT = ROOT / "scenarios" / "support" / "agents" / "credit_hold_right.yaml"

TIMEOUT = 120.0
"""Seconds that a run may take."""


@dataclass(frozen=True, slots=True)
class Trials:
    """What the trials of one run took, in seconds: the first, which imports what is needed, the median of the rest
    (0 without any), and the whole run. `cpu` is processor time a trial, all processes of the run together. `problem`
    says why there is no number."""

    transport: str
    count: int = 0
    first: float = 0.0
    rest: float = 0.0
    run: float = 0.0
    cpu: float = 0.0
    problem: str = ""


def seconds_of(report: JSON) -> list[float]:
    """The seconds of each trial of the only scenario, all of which have passed; ValueError where one has not."""
    found: list[float] = []
    match report:
        case {"result": "pass", "scenarios": [{"trials": list(trials)}]}:
            for trial in trials:
                match trial:
                    case {"seconds": int() | float() as seconds}:
                        found.append(seconds)
    if not found:
        raise ValueError("the trials have not passed")
    return found


def run_trials(transport: str, count: int, folder: Path) -> Trials:
    """Run the scenario `count` times with the scripted agent over `transport`, stdio or in_process."""
    agent = folder / f"agent-{transport}.yaml"
    agent.write_text(f"transport: {transport}\n{AGENT.read_text(encoding='utf-8')}", encoding="utf-8")
    out = folder / f"runs-{transport}"
    command = [WIRETRAP, "run", str(SCENARIO), "--agent", str(agent), "--trials", str(count), "--out", str(out)]
    before = used()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Trials(transport, problem=f"failed: {error}")
    reports = list(out.glob("*/report.json"))
    if done.returncode != 0 or len(reports) != 1:
        return Trials(transport, problem=f"failed: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
    report = json.loads(reports[0].read_text(encoding="utf-8"))
    first, *rest = seconds_of(report)
    whole = float(report["seconds"])
    return Trials(transport, count, first, median(rest) if rest else 0.0, whole, (used() - before) / count)


def used() -> float:
    """Seconds of processor time that ended children, and theirs, have used."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
