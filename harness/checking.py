"""Judges what was recorded, without running anything: traces that are handed in, and the trials of a run folder.

Refuses to know how results are shown, and other harnesses' rules.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.casefile import evidence_of
from harness.category import categorised
from harness.checked import Checked, CheckError, read_object
from harness.convert import convert
from harness.discovery import load_scenarios
from harness.evidence import ServerState
from harness.facts import ConvertError
from harness.finite import finite
from harness.judge import judge, tampered
from harness.judges import Judge, with_opinions
from harness.locating import locate
from harness.looseverdict import loose_scenario, loosely_judged, rules_of
from harness.observability import Measure, Watched, observe, unobserved
from harness.opinions import recorded_opinions
from harness.recordedrun import (
    canaries_of,
    check_named,
    damage_of,
    environment_of,
    file_of,
    roster_of,
    status_of,
    trial_of,
    trials_of,
    verdicts_of,
)
from harness.reported import beside
from harness.results import TrialResult
from harness.roster import Roster
from harness.rubrics import answered, with_rubric
from harness.runfolder import TrialFolder
from harness.scenario import FixtureServer, Scenario
from harness.state import StateError, load_state, read_dump
from harness.trace import Trace
from harness.tracefile import load_trace, trace_to_json
from harness.traceread import TraceFileError
from harness.tracesource import SpanPath, TracePath, TraceSourceError, find_source
from harness.verdict import Status, Verdict
from proxy.spanread import read_spans
from proxy.spans import JSON, SpanError


def read_trace(path: Path) -> Trace:
    """The trace of a file or folder: a trace, or spans that make one. Raises CheckError."""
    try:
        match find_source(path, None, None):
            case TracePath(path=file):
                return load_trace(file)
            case SpanPath(path=spans):
                torn: list[str] = []
                return convert(read_spans([spans], torn.append), notes=torn)
    except (TraceSourceError, TraceFileError, SpanError, ConvertError) as error:
        raise CheckError(str(error)) from error


def read_databases(databases: Mapping[str, Path]) -> dict[str, ServerState]:
    """What databases that were handed in hold, by server; what they held before is not known. Raises CheckError."""
    try:
        return {server: ServerState(None, read_dump(path), None) for server, path in databases.items()}
    except StateError as error:
        raise CheckError(str(error)) from error


def check_trace(scenario: Scenario, path: Path, databases: Mapping[str, Path], asked: Judge | None = None) -> Checked:
    """The verdict of one scenario on one recorded trace; `asked` is a judge, if there is one. Raises CheckError."""
    unknown = sorted(server for server in databases if server not in scenario.servers and scenario.servers)
    if unknown:
        raise CheckError(
            f"--db: scenario {scenario.id} has no server {unknown[0]!r}; it has: {', '.join(scenario.servers)}"
        )
    trace, trial = read_trace(path), trial_of(path)
    roster = None if trial is None else roster_of(trial.path.parent.parent, trial.path.parent.name)
    # A trace of one of our trials may look whole; how the trial ended stands beside it.
    told: Mapping[str, JSON] = {} if trial is None else read_object(trial.verdict)
    status: Status = "completed" if trial is None else status_of(told.get("status"))
    verdict, measures = judge_recorded(scenario, trace, read_databases(databases), asked, roster, trial, status)
    if damage := damage_of(told):
        verdict = tampered(status, damage, verdict.findings)
    result = TrialResult(scenario.id, 1, verdict, 0.0, "imported", gaps=trace.gaps, target="trace", measures=measures)
    return replace(_checked(scenario, result, trace_to_json(trace), str(path)), written=locate(scenario))


def judge_recorded(
    scenario: Scenario,
    trace: Trace,
    state: Mapping[str, ServerState],
    asked: Judge | None = None,
    roster: Roster | None = None,
    trial: TrialFolder | None = None,
    status: Status = "completed",
) -> tuple[Verdict, dict[str, Measure]]:
    """The verdict of a trace that was recorded, and what can be told of it; `trial` is ours that it is of."""
    environment, _ = environment_of(trial)
    evidence = evidence_of(
        scenario, trace, completed=True, state=state, environment=environment, canaries=canaries_of(trial)
    )
    assertions = with_rubric(scenario.assertions, scenario.labels)
    evidence = with_opinions(replace(evidence, roster=roster), assertions, asked)
    assertions = answered(assertions, evidence)
    verdict = categorised(scenario, evidence, judge(assertions, evidence, status))
    return verdict, observe(Watched("trace"), evidence, verdict, assertions)


def databases_of(folder: Path, scenario: Scenario) -> dict[str, Path]:
    """The databases beside a scenario's trace: `<id>.<server>.db`."""
    places = {server: folder / f"{scenario.id}.{server}.db" for server in scenario.servers}
    return {server: place for server, place in places.items() if place.is_file()}


def missing_trace(scenario: Scenario, why: str) -> Checked:
    """The result of a scenario of which there is no trace."""
    verdict = Verdict("error", "infra_error", why)
    checked = _checked(scenario, TrialResult(scenario.id, 1, verdict, 0.0, "imported"), None, None)
    return replace(checked, written=locate(scenario))


def rejudge_run(
    folder: Path, scenarios: Sequence[Path], note: Callable[[str], None], asked: Judge | None = None
) -> Iterator[Checked]:
    """Every trial of a run folder, judged again by its record; one that left none keeps its verdict.

    `scenarios` are files or folders to take the scenarios from, in place of those that the manifest names. `note` hears
    what differs from the run. `asked` is a judge; without one the opinions are those of the run. A trial whose record
    is damaged is an error. Raises CheckError and ScenarioError.
    """
    manifest, report = read_object(folder / "manifest.json"), read_object(folder / "report.json", needed=False)
    named = _object(manifest, "scenarios")
    check_named(folder, named, report)
    paths = list(scenarios) or [file_of(manifest, str(_object(named, name).get("path"))) for name in named]
    by_id = {scenario.id: scenario for scenario in load_scenarios(dict.fromkeys(paths))}
    for name in named:
        scenario = by_id.get(name) or _of_sweep(name, by_id)
        if scenario is None and not scenarios:
            raise CheckError(
                f"{folder}: {_object(named, name).get('path')} has no scenario {name} now, of which the run has trials"
            )
        if scenario is None:
            note(f"{name}: none of the scenarios given has this id; its trials are left out")
            continue
        if hashlib.sha256(scenario.path.read_bytes()).hexdigest() != _object(named, name).get("sha256"):
            note(f"{name}: {scenario.path} is not what it was in the run")
        place = locate(scenario)
        for trial in trials_of(folder, report, name):
            yield replace(_rejudged(folder, manifest, scenario, trial, asked), written=place)
            for variable in environment_of(TrialFolder(folder / name / str(trial)))[1]:
                note(f"{name}, trial {trial}: {variable} is not what it was, so whether it was disclosed is not known")


def _of_sweep(name: str, by_id: Mapping[str, Scenario]) -> Scenario | None:
    """The scenario as an agent of a sweep did it: its id stands behind the agent's name and a dot."""
    scenario = by_id.get(name.partition(".")[2])
    return None if scenario is None else replace(scenario, id=name)


def _rejudged(
    folder: Path, manifest: Mapping[str, JSON], scenario: Scenario, trial: int, asked: Judge | None
) -> Checked:
    run_id = str(manifest.get("run_id"))
    loose = loose_scenario(scenario.path) if rules_of(manifest) != "wiretrap" else None
    place = TrialFolder(folder / scenario.id / str(trial))
    if place.verdict.is_file():
        told: Mapping[str, JSON] = read_object(place.verdict)
    else:
        told = verdicts_of(read_object(folder / "report.json", needed=False)).get((scenario.id, trial), {})
    status, reason = status_of(told.get("status")), str(told.get("reason", "the trial left no verdict"))
    kind = told.get("kind")
    result = TrialResult(
        scenario.id,
        trial,
        Verdict("error", status, reason),
        finite(told.get("seconds")) or 0.0,
        "scripted" if kind == "scripted" else "imported" if kind == "imported" else "real",
        model=model if isinstance(model := told.get("model"), str) else None,
        folder=str(place.path.relative_to(folder)) if place.path.is_dir() else None,
        target=str(told.get("target", "")),
        measures=unobserved(f"the trial ended as {status}"),
    )
    if status in ("infra_error", "harness_error", "cancelled"):
        return _checked(scenario, result, None, None)
    if damage := damage_of(told):
        # What is left of the evidence can clear nobody.
        gaps = tuple(_texts(told.get("gaps")))
        return _checked(scenario, replace(result, verdict=tampered(status, damage), gaps=gaps), None, None)
    if result.kind == "imported":
        try:
            trace = read_trace(place.trace)
        except CheckError as error:
            return _checked(scenario, _unreadable(result, error), None, None)
        verdict, measures = judge_recorded(scenario, trace, {}, asked)
        verdict = verdict if loose is None else loosely_judged(loose, trace, None, status)
        result = replace(result, verdict=verdict, measures=measures, gaps=trace.gaps)
        return _checked(scenario, result, trace_to_json(trace), None)
    doubts = (*_texts(told.get("doubts")), *(_missing_state(place, scenario) if status == "completed" else ()))
    torn = list(doubts)
    try:
        servers = [server for server in scenario.servers if place.state(server, "after").is_file()]
        state = {server: load_state(place.path / "state", server) for server in servers}
        trace = convert(
            read_spans([place.spans], torn.append),
            run_id=run_id,
            scenario_id=scenario.id,
            trial=trial,
            state="wire" if state else "none",
            notes=torn,
        )
        said = read_object(place.reported, needed=False)
        trace = beside(trace, dict(said), str(place.reported)) if said else trace
    except (StateError, SpanError, ConvertError, TraceFileError) as error:
        return _checked(scenario, _unreadable(result, error, doubts), None, None)
    evidence = evidence_of(
        scenario,
        trace,
        completed=status == "completed",
        state=state,
        environment=environment_of(place)[0],
        canaries=canaries_of(place),
        recorded=bool(said) and not scenario.servers,
        live=True,
        doubts=doubts,
    )
    assertions = with_rubric(scenario.assertions, scenario.labels)
    opinions = recorded_opinions(assertions, told)
    evidence = replace(evidence, opinions=opinions, roster=roster_of(folder, scenario.id))
    evidence = with_opinions(evidence, assertions, asked)
    assertions = answered(assertions, evidence)
    if loose is None:
        verdict = categorised(scenario, evidence, judge(assertions, evidence, status))
    else:
        verdict = loosely_judged(loose, trace, dict(said), status)
    measures = observe(_watched(result.target, told), evidence, verdict, assertions)
    verdict = verdict if status == "completed" else replace(verdict, reason=reason)
    return _checked(
        scenario,
        replace(result, verdict=verdict, gaps=trace.gaps, doubts=doubts, measures=measures),
        trace_to_json(trace),
        None,
    )


def _unreadable(result: TrialResult, error: ValueError, doubts: Sequence[str] = ()) -> TrialResult:
    """The result of a trial whose record is damaged: what is left of it is not judged, and the other trials are."""
    reason = f"the record cannot be read: {error}"
    verdict = Verdict("error", "infra_error", reason)
    return replace(result, verdict=verdict, gaps=(*doubts, reason), measures=unobserved(reason))


def _missing_state(place: TrialFolder, scenario: Scenario) -> Iterator[str]:
    """What is gone of the state of our servers: a change that no call explains would pass unseen."""
    for server, upstream in scenario.servers.items():
        parts = ("before", "after", "journal")
        gone = [part for part in parts if not place.state(server, part).is_file()]
        if isinstance(upstream, FixtureServer) and gone:
            yield f"of the state of {server} there is no {' and no '.join(gone)}"


def _watched(target: str, told: Mapping[str, JSON]) -> Watched:
    """What was known of the target when the trial was run; its first text is in the reason that stands there."""
    seconds = finite(_object(_object(told, "measures"), "latency").get("value"))
    return Watched(target, seconds, alone=target == "scripted" or target.startswith("model ("))


def _texts(value: JSON) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _checked(scenario: Scenario, result: TrialResult, trace: Mapping[str, JSON] | None, path: str | None) -> Checked:
    return Checked(
        str(scenario.path),
        scenario.id,
        scenario.title,
        scenario.category,
        scenario.severity,
        result,
        trace,
        path,
        scenario.labels,
    )


def _object(value: Mapping[str, JSON], key: str) -> Mapping[str, JSON]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
