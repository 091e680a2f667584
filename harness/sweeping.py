"""Runs a sweep: each agent does each task, in one run folder, begun anew or gone on with.

Refuses to know what a trial is and how the report looks. A trial's key is its agent, its task and the digests of all
files of both: where one of them has changed, the trial is done again, and all others keep their results.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import replace as changed
from datetime import UTC, datetime
from pathlib import Path

from harness.manifest import manifest
from harness.measuring import Measured, measure
from harness.modelagent import ModelAgent
from harness.places import is_folder
from harness.report.swept import as_markdown, as_text
from harness.results import RunResult, TrialResult
from harness.resuming import read_made_of
from harness.runfolder import RunFolderError, TrialFolder, make_run_folder, replace
from harness.runfolder import as_text as as_json_text
from harness.runjournal import await_workers, keep_results, read_results, run_lock
from harness.running import Going, go, run_facts
from harness.runsecrets import hiding_for
from harness.selection import Selected, Selection, check_jobs, load_selection
from harness.sweepfile import Sweep, SweepFileError, with_models
from harness.sweepresult import ArmResult, SweepResult, Tried
from harness.tracefile import load_trace
from harness.traceread import TraceFileError
from proxy.problem import Problem
from proxy.spans import JSON

AGENTS = "agents"
"""The folder of a sweep's run folder that has the agent files made for its models. No scenario of a sweep is called
so, since each id has the agent's name and a dot before it."""
REPORTS = ("sweep.json", "sweep.txt", "sweep.md")


class Spent:
    """What the trials of a sweep have used so far. What is not known counts for nothing."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.tokens, self.cost = 0, 0.0

    def add(self, measured: Measured) -> None:
        """Count a trial."""
        self.tokens += measured.tokens or 0
        self.cost += measured.cost or 0.0

    @property
    def over(self) -> str | None:
        """Why no further trial may begin, None while they may."""
        if self.sweep.tokens is not None and self.tokens >= self.sweep.tokens:
            return f"limits.tokens: {self.tokens} of {self.sweep.tokens} tokens are used"
        if self.sweep.cost is not None and self.cost >= self.sweep.cost:
            return f"limits.cost: {self.cost:.4f} of {self.sweep.cost:.4f} dollars are used"
        return None


def check_sweep(sweep: Sweep, jobs: int = 1) -> None:
    """Read all that a sweep is made of, and make nothing. Raises ProblemError with what is wrong."""
    hiding = hiding_for((), os.environ, secrets.token_hex(32))
    with tempfile.TemporaryDirectory(prefix="wiretrap-") as draft:
        arms = with_models(sweep, Path(draft) / AGENTS)
        for made in sorted(Path(draft).glob(f"{AGENTS}/*")):
            # These files stay in the run folder, where no secret may be.
            if hiding.text(text := made.read_text(encoding="utf-8")) != text:
                said = f"{made.stem} would hold the value of a secret variable; name the variable under `key`"
                raise SweepFileError([Problem(str(sweep.path), None, "models", said)])
        check_jobs(load_selection(Selection(sweep.tasks, arms=arms)), jobs)


def run_sweep(sweep: Sweep, going: Going, *, out: Path, resume: Path | None = None) -> tuple[SweepResult, Path]:
    """Run a sweep in a new run folder under `out`, or go on with that of `resume`; the result, and the folder.

    Raises ProblemError for files that are wrong, before anything is run, RunFolderError and ReportError.
    """
    if resume is not None and not is_folder(resume):
        raise RunFolderError(f"{resume}: there is no such run folder")
    # Nothing is made before all is known to be right.
    check_sweep(sweep, going.jobs)
    folder = make_run_folder(out) if resume is None else resume.resolve()
    with run_lock(folder):
        await_workers(folder)
        return _run(sweep, going, folder, resumed=resume is not None), folder


def _run(sweep: Sweep, going: Going, folder: Path, *, resumed: bool) -> SweepResult:
    selection = Selection(sweep.tasks, arms=with_models(sweep, folder / AGENTS))
    selected = load_selection(selection)
    hiding = hiding_for(selected.by_id.values(), os.environ, secrets.token_hex(32), selected.agents.values())
    now = datetime.now(UTC)
    facts = run_facts(folder, selected, selection, hiding, sweep.trials, going.jobs, now, (), going.judge)
    earlier: dict[tuple[str, int], TrialResult] = {}
    if resumed:
        before = read_made_of(folder)
        facts = changed(facts, started_at=before.started_at, resumed_at=(*before.resumed_at, now))
        same = _unchanged(before.made_of, manifest(facts, (), None), folder)
        earlier = {key: result for key, result in read_results(folder).items() if key[0] in same}
        keep_results(folder, earlier.values())
    spent = Spent(sweep)
    for result in earlier.values():
        if result.scenario in selected.by_id and result.trial <= sweep.trials:
            spent.add(_measured(selected, folder, result))

    def watch(result: TrialResult) -> str | None:
        spent.add(_measured(selected, folder, result))
        return spent.over

    run = go(folder, facts, earlier, changed(going, watch=watch, stopped=spent.over))
    told = _told(sweep, selected, folder, run, spent)
    for name, text in zip(REPORTS, (as_json_text(told.as_json()), as_text(told), as_markdown(told)), strict=True):
        replace(folder / name, hiding.text(text))
    return told


def _unchanged(before: JSON, now: JSON, folder: Path) -> set[str]:
    """The ids whose scenario, agent and files are what they were. Raises RunFolderError where the versions are not."""
    match before, now:
        case {"versions": dict(then), "scenarios": dict(old)}, {"versions": dict(ours), "scenarios": dict(new)}:
            if then != ours:
                raise RunFolderError(f"{folder}: the versions of what ran it have changed; start a new sweep")
            return {name for name, made_of in new.items() if old.get(name) == made_of}
        case _:
            raise RunFolderError(f"{folder}: its manifest does not say what it was made of; start a new sweep")


def _measured(selected: Selected, folder: Path, result: TrialResult) -> Measured:
    if result.folder is None:
        return Measured()
    try:
        trace = load_trace(TrialFolder(folder / result.scenario / str(result.trial)).trace)
    except (TraceFileError, OSError):
        return Measured()
    scenario, agent = selected.by_id[result.scenario], selected.agents[result.scenario]
    return measure(scenario, trace, agent.roster(scenario.servers) if isinstance(agent, ModelAgent) else None)


def _told(sweep: Sweep, selected: Selected, folder: Path, run: RunResult, spent: Spent) -> SweepResult:
    def tried(arm: str) -> Iterator[Tried]:
        for scenario in run.scenarios:
            name, _, task = scenario.id.partition(".")
            if name == arm:
                for result in scenario.trials:
                    yield Tried(arm, task, result, _measured(selected, folder, result))

    arms = tuple(ArmResult(arm, tuple(tried(arm))) for arm in sweep.arms)
    unfinished = any(arm.not_done for arm in arms)
    stopped = spent.over if unfinished and spent.over is not None else "it was cancelled" if unfinished else None
    return SweepResult(run.run_id, arms, stopped, run.cancelled)
