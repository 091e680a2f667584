"""Checks a scenario by itself: its reference passes, and whatever differs from it in one way does not.

Refuses to know how mutants are made and how results are shown. Every run is a real trial in this process: the fixture
servers, the proxy's session and the judge are those of any other trial (verdicts.md section 7).
"""

import os
import secrets
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from harness.agentfile import ScriptedAgent
from harness.assertions.judged import Judged
from harness.forbidden import NEED_AIM, Known, forbidden_steps
from harness.left import Left, carried_by, is_equivalent, left_by
from harness.mutants import Mutant, Reference, as_agent, mutants, written_out
from harness.othervalues import Takes
from harness.privatefolder import clear_stale, private_folder
from harness.references import StepReferenceError, bind_error, bind_result
from harness.results import TrialResult
from harness.runfolder import TrialFolder
from harness.runsecrets import hiding_for
from harness.scenario import FixtureServer, Scenario, load_scenario
from harness.selfcheckresult import MutantResult, SelfCheck, Unbroken
from harness.state import StateError
from harness.steps import Call, Fetch, Step
from harness.targets.fixtures import fixture_offers, fixture_takes
from harness.targets.proxied import new_canaries
from harness.traceread import TraceFileError
from harness.trial import TrialPlan, run_trial
from harness.verdict import Result
from proxy.problem import ProblemError

MEMORY = Path("/dev/shm")  # noqa: S108 - only a folder with a random name is made in it
"""Where Linux keeps files in memory: hundreds of small databases need not go to a disk."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a run of steps came to; `left` is there where it passed."""

    result: TrialResult
    left: Left | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """Where steps are tried: one scenario, with the same canaries in every run of it.

    `cancel` is a descriptor that is readable once the run is to stop.
    """

    scenario: Scenario
    canaries: dict[str, str]
    cancel: int | None = None

    def try_steps(self, steps: tuple[Step, ...]) -> Tried:
        """Run the steps as a scripted agent, and read what they left. Raises KeyboardInterrupt where cancelled."""
        hiding = hiding_for([self.scenario], os.environ, secrets.token_hex(32))
        agent = ScriptedAgent(self.scenario.path, steps, "in_process")
        with _folder() as folder:
            private = folder / "private"
            private.mkdir(mode=0o700)
            runs = folder / "run"
            plan = TrialPlan(
                "selfcheck",
                runs,
                hiding,
                self.scenario,
                agent,
                1,
                private=private,
                canaries=self.canaries,
                cancel=self.cancel,
            )
            result = run_trial(plan)
            if result.verdict.status == "cancelled":
                raise KeyboardInterrupt
            passed = result.verdict.result == "pass"
            return Tried(result, left_by(self.scenario, TrialFolder(runs / self.scenario.id / "1")) if passed else None)


@contextmanager
def _folder() -> Iterator[Path]:
    with private_folder(_memory()) as folder:
        yield folder


def _memory() -> Path | None:
    return MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None


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
        # Ctrl-C reaches every process of a terminal; those that are started here do not hear it, and are ended by us.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            found = pool.map(_try_elsewhere, all_steps)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        yield from found


def checkable(scenario: Scenario) -> Scenario:
    """The scenario as programs judge it: no opinion decides anything, and the reference is a run without faults."""
    firm = tuple(assertion for assertion in scenario.assertions if not isinstance(assertion, Judged))
    return replace(scenario, assertions=firm, faults=(), fault_maps=())


def self_check(
    scenario: Scenario,
    jobs: int = 1,
    hear: Callable[[MutantResult], None] | None = None,
    may_hold: Collection[str] = (),
    cancel: int | None = None,
) -> SelfCheck:
    """Run the reference and every mutant, `jobs` at once. `hear` is told of each mutant as it comes.

    `may_hold` are the ids of assertions that may hold in every mutant. Once the descriptor `cancel` is readable, it
    ends with KeyboardInterrupt.
    """
    scenario = checkable(scenario)
    check = SelfCheck(scenario.id, str(scenario.path), "not_run")
    cannot = _cannot(scenario)
    if cannot is not None:
        return check.because(cannot, "not_run")
    bench = Bench(scenario, new_canaries(scenario), cancel)
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
        carried = carried_by(steps, right.left, bench.canaries)
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
    same = is_equivalent(mutant, tried.left, steps, right)
    return MutantResult(mutant, "equivalent" if same else "survived", verdict.result, verdict.reason)


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
