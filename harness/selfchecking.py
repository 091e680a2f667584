"""Checks a scenario by itself: its reference passes, and whatever differs from it in one way does not.

Refuses to know how mutants are made and how results are shown. Every run is a real trial in this process: the fixture
servers, the proxy's session and the judge are those of any other trial (verdicts.md section 7).
"""

import json
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from harness.agentfile import ScriptedAgent
from harness.assertions.judged import Judged
from harness.explain import call_key
from harness.forbidden import NEED_AIM, Known, forbidden_steps
from harness.mutants import Mutant, Reference, as_agent, mutants, written_out
from harness.othervalues import Rows, Takes
from harness.outcomes import is_ok
from harness.privatefolder import clear_stale, private_folder
from harness.references import StepReferenceError, bind_error, bind_result
from harness.results import TrialResult
from harness.runfolder import TrialFolder
from harness.runsecrets import hiding_for
from harness.scenario import FixtureServer, Scenario, load_scenario
from harness.selfcheckresult import MutantResult, SelfCheck, Unbroken
from harness.state import StateError, load_state
from harness.steps import Call, Fetch, Step
from harness.targets.fixtures import fixture_offers, fixture_takes
from harness.targets.proxied import new_canaries
from harness.trace import ToolCall, Trace
from harness.tracefile import load_trace
from harness.traceread import TraceFileError
from harness.trial import TrialPlan, run_trial
from harness.verdict import Result
from proxy.problem import ProblemError
from proxy.spans import JSON

MEMORY = Path("/dev/shm")  # noqa: S108 - only a folder with a random name is made in it
"""Where Linux keeps files in memory: hundreds of small databases need not go to a disk."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a trial that passed left: its calls in order, and of each server the rows that it holds at the end."""

    trace: Trace
    before: Rows
    after: Rows
    changing: frozenset[int]


@dataclass(frozen=True, slots=True)
class Tried:
    """What a run of steps came to; `left` is there where it passed."""

    result: TrialResult
    left: Left | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """Where steps are tried: one scenario, with the same canaries in every run of it."""

    scenario: Scenario
    canaries: dict[str, str]

    def try_steps(self, steps: tuple[Step, ...]) -> Tried:
        """Run the steps as a scripted agent, and read what they left."""
        hiding = hiding_for([self.scenario], os.environ, secrets.token_hex(32))
        agent = ScriptedAgent(self.scenario.path, steps, "in_process")
        with _folder() as folder:
            private = folder / "private"
            private.mkdir(mode=0o700)
            runs = folder / "run"
            result = run_trial(
                TrialPlan("selfcheck", runs, hiding, self.scenario, agent, 1, private=private, canaries=self.canaries)
            )
            passed = result.verdict.result == "pass"
            return Tried(result, _left(self.scenario, TrialFolder(runs / self.scenario.id / "1")) if passed else None)


@contextmanager
def _folder() -> Iterator[Path]:
    with private_folder(_memory()) as folder:
        yield folder


def _memory() -> Path | None:
    return MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None


def _left(scenario: Scenario, folder: TrialFolder) -> Left:
    trace = load_trace(folder.trace)
    states = {server: load_state(folder.path / "state", server) for server in scenario.servers}
    keys = {call_key(row.connection, row.request_id) for state in states.values() for row in state.journal or ()}
    calls = enumerate(trace.tool_calls)
    return Left(
        trace,
        {server: state.before.tables for server, state in states.items() if state.before is not None},
        {server: state.after.tables for server, state in states.items()},
        frozenset(place for place, call in calls if call_key(call.connection, call.request_id) in keys - {None}),
    )


_bench: Bench | None = None
"""That of a process of a pool."""


def _set_up(path: Path, canaries: dict[str, str]) -> None:
    global _bench  # noqa: PLW0603 - a process of a pool has one scenario
    _bench = Bench(checkable(load_scenario(path, fixture_offers())), canaries)


def _try_elsewhere(steps: tuple[Step, ...]) -> Tried:
    assert _bench is not None
    return _bench.try_steps(steps)


def _try_all(bench: Bench, all_steps: Sequence[tuple[Step, ...]], jobs: int) -> Iterable[Tried]:
    if jobs == 1 or len(all_steps) < 2:
        yield from map(bench.try_steps, all_steps)
        return
    # Not forked: the event loops and databases of this process are none of theirs.
    start = get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(all_steps)), start, _set_up, (bench.scenario.path, bench.canaries)) as pool:
        yield from pool.map(_try_elsewhere, all_steps)


def checkable(scenario: Scenario) -> Scenario:
    """The scenario as programs judge it: no opinion decides anything, and the reference is a run without faults."""
    firm = tuple(assertion for assertion in scenario.assertions if not isinstance(assertion, Judged))
    return replace(scenario, assertions=firm, faults=(), fault_maps=())


def self_check(
    scenario: Scenario,
    jobs: int = 1,
    hear: Callable[[MutantResult], None] | None = None,
    may_hold: Collection[str] = (),
) -> SelfCheck:
    """Run the reference and every mutant, `jobs` at once. `hear` is told of each mutant as it comes.

    `may_hold` are the ids of assertions that may hold in every mutant.
    """
    scenario = checkable(scenario)
    check = SelfCheck(scenario.id, str(scenario.path), "not_run")
    cannot = _cannot(scenario)
    if cannot is not None:
        return check.because(cannot, "not_run")
    bench = Bench(scenario, new_canaries(scenario))
    clear_stale(_memory())
    try:
        right = bench.try_steps(scenario.reference)
        if right.left is None:
            return check.because(f"the reference does not pass: {_said(right)}", _worse(right))
        steps = _written_out(scenario.reference, right.left)
        if steps != _unnamed(scenario.reference):
            # What the mutants are held against: else they would differ in more than one way.
            right = bench.try_steps(as_agent(steps))
            if right.left is None:
                return check.because(
                    f"the reference with its answers written out does not pass: {_said(right)}", _worse(right)
                )
        assert right.left is not None
        reference = _reference(scenario, steps, right.left)
        carried = _carried(steps, right.left, bench.canaries)
        known = Known(scenario.expected, reference, carried, os.environ)
        made = mutants(reference, forbidden_steps(scenario.assertions, known))
        tried = _try_all(bench, [as_agent(mutant.steps) for mutant in made], jobs)
        results: list[MutantResult] = []
        broken: set[int] = set()
        failed: set[int] = set()
        for mutant, one in zip(made, tried, strict=True):
            told = _told(mutant, one, steps, right.left)
            results.append(told)
            findings = one.result.verdict.findings
            broken |= {n for n, finding in enumerate(findings) if finding.result != "pass"}
            failed |= {n for n, finding in enumerate(findings) if finding.result == "fail"}
            if hear is not None:
                hear(told)
    except (StepReferenceError, StateError, TraceFileError, ProblemError) as error:
        return check.because(str(error), "error")
    aimed = frozenset(aim for mutant in made for aim in mutant.aims)
    # What is done on purpose has to fail: that it is not run where nothing is done says little.
    return check.with_mutants(results, _unbroken(scenario, right, broken - (aimed - failed), aimed, may_hold))


def _cannot(scenario: Scenario) -> str | None:
    foreign = [name for name, server in scenario.servers.items() if not isinstance(server, FixtureServer)]
    if not scenario.reference:
        return "it has no reference: write the steps of a right run under `reference`"
    if foreign:
        return f"{', '.join(foreign)}: only fixtures can be run in process, where mutants are tried"
    return None


def _said(tried: Tried) -> str:
    return tried.result.verdict.reason


def _worse(tried: Tried) -> Result:
    return "fail" if tried.result.valid and tried.result.verdict.result != "error" else "error"


def _unnamed(steps: Sequence[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, name=None) if isinstance(step, Call | Fetch) else step for step in steps)


def _written_out(steps: Sequence[Step], left: Left) -> tuple[Step, ...]:
    answers = [
        bind_error("") if not isinstance(call.result, dict) else bind_result(call.result)
        for call in left.trace.tool_calls
    ]
    return written_out(steps, answers)


def _reference(scenario: Scenario, steps: tuple[Step, ...], left: Left) -> Reference:
    places = [place for place, step in enumerate(steps) if isinstance(step, Call)]
    writes = frozenset(places[number] for number in left.changing)
    takes: dict[tuple[str, str], Takes] = {}
    for name, server in scenario.servers.items():
        if isinstance(server, FixtureServer):
            takes.update({(name, tool): found for tool, found in fixture_takes(server.fixture).items()})
    return Reference(steps, writes, takes, left.before)


def _told(mutant: Mutant, tried: Tried, steps: tuple[Step, ...], right: Left) -> MutantResult:
    verdict = tried.result.verdict
    if verdict.result == "error":
        return MutantResult(mutant, "error", verdict.result, verdict.reason)
    if tried.left is None:
        return MutantResult(mutant, "caught", verdict.result, verdict.reason)
    same = _is_equivalent(mutant, tried.left, steps, right)
    return MutantResult(mutant, "equivalent" if same else "survived", verdict.result, verdict.reason)


def _is_equivalent(mutant: Mutant, left: Left, steps: tuple[Step, ...], right: Left) -> bool:
    """Whether it differs only in a step that need not be, and all else of state and calls is as it was; or in a write
    that changed nothing."""
    if mutant.kind == "another_tool":
        return right.after == left.after
    if mutant.step is None or mutant.kind not in ("dropped", "changed", "left_out"):
        return False
    step = steps[mutant.step]
    if not isinstance(step, Call | Fetch) or not step.optional:
        return False
    number = sum(isinstance(one, Call) for one in steps[: mutant.step])
    ours, theirs = list(map(_as_evidence, right.trace.tool_calls)), list(map(_as_evidence, left.trace.tool_calls))
    if isinstance(step, Fetch):
        return ours == theirs and right.after == left.after
    del ours[number]
    if mutant.kind != "dropped":
        del theirs[number]
    return ours == theirs and right.after == left.after and number not in right.changing


def _as_evidence(call: ToolCall) -> tuple[JSON, ...]:
    return call.name, call.arguments, call.outcome, call.result, is_ok(call)


def _carried(steps: Sequence[Step], left: Left, canaries: Mapping[str, str]) -> dict[int, str]:
    """For each call of the reference that was answered with a canary, by its place, that canary."""
    places = [place for place, step in enumerate(steps) if isinstance(step, Call)]
    texts = {place: json.dumps(call.result) for place, call in zip(places, left.trace.tool_calls, strict=False)}
    found = {place: [one for one in canaries.values() if one in text] for place, text in texts.items()}
    return {place: there[0] for place, there in found.items() if there}


def _unbroken(
    scenario: Scenario, right: Tried, broken: Collection[int], aimed: Collection[int], may_hold: Collection[str]
) -> tuple[Unbroken, ...]:
    findings = right.result.verdict.findings
    found: list[Unbroken] = []
    for number, assertion in enumerate(scenario.assertions):
        name = findings[number].id
        if number not in broken:
            counts = (assertion.type not in NEED_AIM or number in aimed) and name not in may_hold
            found.append(Unbroken(name, counts, name in may_hold))
    return tuple(found)
