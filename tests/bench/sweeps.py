"""A sweep of the four architectures over both support tasks, five trials each, as `wiretrap sweep` times it.

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
ARCHITECTURES = ("single_agent", "peer_to_peer", "supervisor_worker", "debate_critic")
SCRIPTS = {"support.customer_escalation": "escalating", "support.credit_hold_escalation": "copying"}
"""The script of the model for each task."""
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


def write_sweep(folder: Path, trials: int) -> Path:
    """The sweep's file, with the agents in process."""
    agents: dict[str, JSON] = {}
    for architecture in ARCHITECTURES:
        by_task: dict[str, JSON] = {}
        for task, script in SCRIPTS.items():
            model: JSON = {"provider": "scripted", "script": str(SUPPORT / "scripts" / f"{script}.yaml")}
            file = folder / f"{architecture}.{script}.yaml"
            agent: JSON = {"model": model, "architecture": architecture, "transport": "in_process"}
            file.write_text(json.dumps(agent), encoding="utf-8")
            by_task[task] = file.name
        agents[architecture] = by_task
    path = folder / "sweep.yaml"
    path.write_text(json.dumps({"tasks": [str(SUPPORT)], "agents": agents, "trials": trials}), encoding="utf-8")
    return path


def run_sweep(jobs: int, folder: Path) -> Swept:
    """Run it with so many workers. All trials have to pass."""
    path, out = write_sweep(folder, TRIALS), folder / f"sweep-{jobs}"
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
    if set(passed.values()) != {len(SCRIPTS) * TRIALS}:
        return Swept(jobs, problem=f"failed: {passed} passed")
    trials = len(ARCHITECTURES) * len(SCRIPTS) * TRIALS
    return Swept(jobs, trials, seconds, (used() - before) / trials)
