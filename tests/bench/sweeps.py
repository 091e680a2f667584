"""A sweep of four scripted agents over two tasks, five trials each, as `wiretrap sweep` times it.

Refuses to know how that is shown.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from proxy.spans import JSON
from tests.bench.contestants import WIRETRAP, environment
from tests.bench.trials import used
from tests.peers.places import ROOT

SUPPORT = ROOT / "scenarios" / "support"
AGENTS = {
    "right": ("customer_escalation_right", "credit_hold_right"),
    "other_ticket": ("customer_escalation_other_ticket", "credit_hold_other_ticket"),
    "guesses": ("customer_escalation_guesses", "credit_hold_escalates"),
    "overwrites": ("customer_escalation_right", "credit_hold_overwrites"),
}
"""The agent of each task, in the order of TASKS."""
TASKS = ("support.customer_escalation", "support.credit_hold_escalation")
TRIALS = 5
TIMEOUT = 180.0
"""Seconds that the sweep may take."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep took, in seconds, and processor time a trial. `problem` says why there is no number."""

    jobs: int
    trials: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    problem: str = ""


def write_sweep(folder: Path) -> Path:
    """The sweep's file, with the agents in process."""
    agents: dict[str, JSON] = {}
    for name, files in AGENTS.items():
        by_task: dict[str, JSON] = {}
        for task, file in zip(TASKS, files, strict=True):
            steps = (SUPPORT / "agents" / f"{file}.yaml").read_text(encoding="utf-8")
            (folder / f"{file}.yaml").write_text(f"transport: in_process\n{steps}", encoding="utf-8")
            by_task[task] = f"{file}.yaml"
        agents[name] = by_task
    path = folder / "sweep.yaml"
    path.write_text(json.dumps({"tasks": [str(SUPPORT)], "agents": agents, "trials": TRIALS}), encoding="utf-8")
    return path


def run_sweep(jobs: int, folder: Path) -> Swept:
    """Run it with so many workers."""
    path, out = write_sweep(folder), folder / f"sweep-{jobs}"
    command = [WIRETRAP, "sweep", str(path), "--jobs", str(jobs), "--out", str(out), "--format", "json"]
    before, began = used(), monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Swept(jobs, problem=f"failed: {error}")
    seconds = monotonic() - began
    if done.returncode != 0:
        return Swept(jobs, problem=f"failed: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
    passed = {arm["agent"]: arm["raw"]["passed"] for arm in json.loads(done.stdout)["agents"]}
    if passed != {"right": 10, "other_ticket": 0, "guesses": 0, "overwrites": 5}:
        return Swept(jobs, problem=f"failed: {passed} passed")
    trials = len(AGENTS) * len(TASKS) * TRIALS
    return Swept(jobs, trials, seconds, (used() - before) / trials)
