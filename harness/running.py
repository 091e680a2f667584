"""One run from its folder to its reports: begun anew, or gone on with where it was killed.

Refuses to know what a trial is and what is judged.
"""

import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from harness.agentprogram import program_files
from harness.gate import EVERYTHING, Gate
from harness.hiding import Hiding
from harness.judges import open_judge
from harness.locating import locate
from harness.manifest import RunFacts, manifest
from harness.places import is_folder
from harness.report.junit import as_junit
from harness.report.markdown import as_markdown
from harness.report.progress import Progress
from harness.report.sarif import as_sarif
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.resuming import differences, read_begun
from harness.runfolder import MANIFEST, RunFolderError, as_text, make_run_folder, make_way, replace
from harness.runjournal import RunJournal, await_workers, read_results, run_lock
from harness.runner import Runner
from harness.runsecrets import hiding_for, missing_variables
from harness.scenario import Scenario
from harness.selection import Selected, Selection, check_jobs, kind_of, load_selection
from harness.worker import Job, Start
from harness.written import Place, Written


class ReportError(ValueError):
    """A report that could not be written in its place; `run` is what it says, or would have said."""

    def __init__(self, message: str, run: RunResult) -> None:
        super().__init__(message)
        self.run = run


@dataclass(frozen=True, slots=True)
class Going:
    """How the trials of a run are to be run, and what is held against their verdicts. `otlp` is where copies of the
    spans go, `judge` names a judge whose file is found from everywhere. `watch` hears each result and says why no
    further trial is to begin, None while they may; `stopped` says so from the start."""

    jobs: int = 1
    keep: bool = False
    gate: Gate = EVERYTHING
    otlp: str | None = None
    judge: str | None = None
    watch: Callable[[TrialResult], str | None] | None = None
    stopped: str | None = None


def run_selected(
    selected: Selected,
    selection: Selection,
    *,
    trials: int | None,
    jobs: int,
    out: Path,
    keep: bool,
    gate: Gate = EVERYTHING,
    otlp: str | None = None,
    judge: str | None = None,
) -> tuple[RunResult, Path]:
    """Run what was selected; the result, and the run folder with its reports.

    Raises SelectionError, RunFolderError and ReportError.
    """
    check_jobs(selected, jobs)
    key = secrets.token_hex(32)
    hiding = hiding_for(selected.by_id.values(), os.environ, key, selected.agents.values(), otlp)
    folder = make_run_folder(out)
    facts = run_facts(folder, selected, selection, hiding, trials, jobs, datetime.now(UTC), (), judge)
    with run_lock(folder):
        return go(folder, facts, {}, Going(jobs, keep, gate, otlp, judge)), folder


def resume_run(folder: Path, command: tuple[str, ...] | None, going: Going) -> tuple[RunResult, Path]:
    """Go on with the run of a folder: trials that have a result keep it, all others are done anew.

    What an unfinished trial left is moved aside. Raises RunFolderError where the run is under way or was made of
    anything else, ProblemError where it cannot be read any more, and ReportError.
    """
    if not is_folder(folder):
        raise RunFolderError(f"{folder}: there is no such run folder")
    folder = folder.resolve()
    with run_lock(folder):
        await_workers(folder)
        begun = read_begun(folder, command)
        selected = load_selection(begun.selection)
        check_jobs(selected, going.jobs)
        hiding = hiding_for(
            selected.by_id.values(), os.environ, secrets.token_hex(32), selected.agents.values(), going.otlp
        )
        moments = (*begun.resumed_at, datetime.now(UTC))
        facts = run_facts(
            folder, selected, begun.selection, hiding, begun.trials, going.jobs, begun.started_at, moments, going.judge
        )
        changed = list(differences(begun, manifest(facts, (), None)))
        if changed:
            raise RunFolderError(
                f"{folder}: this run was made of something else, and the two may not be mixed: {'; '.join(changed[:5])}"
                f"{f' and {len(changed) - 5} more' if len(changed) > 5 else ''}; start a new run"
            )
        return go(folder, facts, read_results(folder), going), folder


def run_facts(
    folder: Path,
    selected: Selected,
    selection: Selection,
    hiding: Hiding,
    trials: int | None,
    jobs: int,
    started_at: datetime,
    resumed_at: tuple[datetime, ...],
    judge: str | None = None,
) -> RunFacts:
    """What a run in this folder is made of, as its manifest will say it."""
    digests, shown = selected.digests(), selected.digests(hiding.file_digest)
    return RunFacts(
        folder.name,
        started_at,
        trials,
        jobs,
        selected,
        hiding,
        shown,
        frozenset(path for path, digest in shown.items() if digest != digests[path]),
        {name: program_files(selected.agents[name], one, hiding) for name, one in selected.by_id.items()},
        selection,
        resumed_at,
        None if judge is None else open_judge(judge).name,
        os.getcwd(),
    )


def go(folder: Path, facts: RunFacts, earlier: Mapping[tuple[str, int], TrialResult], going: Going) -> RunResult:
    """Run the trials that have no earlier result, and write the reports. The folder's lock is held by the caller.

    Raises ReportError.
    """
    began = time.monotonic()
    selected, hiding = facts.selected, facts.hiding
    _warn(hiding, missing_variables(selected.by_id.values(), os.environ))
    every = [
        Job(scenario.id, trial, kind_of(selected.agents[scenario.id]), scenario.limits.seconds)
        for scenario in selected.by_id.values()
        for trial in range(1, (facts.trials or scenario.trials) + 1)
    ]
    kept = {(job.scenario, job.trial): earlier[job.scenario, job.trial] for job in every if _key(job) in earlier}
    work = [job for job in every if _key(job) not in kept]
    if facts.selection.arms:
        # Where a limit ends a sweep, every agent has had about as many trials.
        work.sort(key=lambda job: job.trial)
    replace(folder / MANIFEST, as_text(manifest(facts, list(kept.values()), None)))
    for job in work:
        _move_aside(folder / job.scenario / str(job.trial))
    # Agents may change files; reports point into those that are run.
    written = {name: _located(scenario, hiding) for name, scenario in selected.by_id.items()}
    progress = Progress(len(work), sys.stderr)
    journal = RunJournal(folder)

    def hear(result: TrialResult) -> None:
        journal.add(result)
        progress.advance(result.scenario, result.verdict.result == "pass")
        if going.watch is not None and (why := going.watch(result)) is not None:
            runner.stop(why)

    start = Start(
        parent=os.getpid(),
        run_id=folder.name,
        run_folder=str(folder.absolute()),
        redact_key=hiding.key.hex(),
        keep=going.keep,
        selection=facts.selection,
        digests=selected.digests(),
        otlp=going.otlp,
        judge=going.judge,
    )
    runner = Runner(start, work, going.jobs, hear, stopped=going.stopped, hiding=hiding)
    try:
        done = runner.run() if work else ()
    finally:
        journal.close()
    progress.finish()
    by_key = {**kept, **{(result.scenario, result.trial): result for result in done}}
    results = [by_key[_key(job)] for job in every]
    scenarios = _by_scenario(selected, results, hiding, written)
    run = RunResult(facts.run_id, scenarios, time.monotonic() - began, cancelled=runner.cancelled, gate=going.gate)
    _write_reports(folder, run, as_text(manifest(facts, results, datetime.now(UTC))))
    if journal.problem is not None:
        said = f"{folder}: the results could not all be written down, so the run cannot be resumed: {journal.problem}"
        raise ReportError(said, run)
    return run


def _key(job: Job) -> tuple[str, int]:
    return job.scenario, job.trial


def _move_aside(trial: Path) -> None:
    """A trial without a result is done anew; what it left is kept under a name that no trial has."""
    if os.path.lexists(trial):
        make_way(trial)
        said = f"wiretrap: trial {trial.parent.name}/{trial.name} was not finished and is done anew"
        click.echo(f"{said}; what it left is kept beside it, as .{trial.name}.*", err=True)


def _write_reports(folder: Path, run: RunResult, manifest_text: str) -> None:
    documents = {
        "report.json": as_text(run.as_json()),
        "report.md": as_markdown(run),
        "report.sarif": as_text(as_sarif(run)),
        "junit.xml": as_junit(run),
        MANIFEST: manifest_text,
    }
    taken = []
    for name, text in documents.items():
        try:
            if (folder / name).is_dir():
                # An agent was here first.
                make_way(folder / name)
                taken.append(name)
            replace(folder / name, text)
        except OSError as error:
            raise ReportError(f"{folder / name} cannot be written: {error.strerror or error}", run) from error
    if taken:
        raise ReportError(f"while agents ran somebody took the place of {', '.join(taken)}; it was moved aside", run)


def _warn(hiding: Hiding, missing: Sequence[str]) -> None:
    if hiding.too_short:
        click.echo(f"wiretrap: not redacted, since shorter than 8 characters: {', '.join(hiding.too_short)}", err=True)
    if missing:
        click.echo(f"wiretrap: secrets without a value, so not redacted: {', '.join(missing)}", err=True)


def _located(scenario: Scenario, hiding: Hiding) -> Written:
    found = locate(scenario)
    # The ids of findings are hidden, and a type that nobody knows may be any text.
    places = (Place(hiding.text(one.finding), hiding.text(one.type), one.line) for one in found.places)
    return Written(hiding.text(found.path), found.line, tuple(places))


def _by_scenario(
    selected: Selected, results: Sequence[TrialResult], hiding: Hiding, written: Mapping[str, Written]
) -> tuple[ScenarioResult, ...]:
    return tuple(
        ScenarioResult(
            scenario.id,
            hiding.text(scenario.title),
            scenario.category,
            tuple(result for result in results if result.scenario == scenario.id),
            {name: hiding.text(value) for name, value in scenario.labels.items()},
            scenario.severity,
            written[scenario.id],
        )
        for scenario in selected.by_id.values()
    )
