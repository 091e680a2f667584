"""One trial of one scenario, from its seeded databases to its verdict.

Refuses to know other trials, and how a result is shown. A trial ends in exactly one status:

- completed: the agent came to its own end. The assertions decide.
- agent_timeout, limit: it was stopped at `limits.seconds`, or at another limit.
- agent_crash: it ended with another exit code than 0 or by a signal; of a scripted agent, a step failed; of a model
  agent, a model call.
- infra_error: a server, a database or the agent's program could not be got ready or broke; says nothing of the agent.
- harness_error: a fault of ours.
- cancelled: somebody stopped the run.
"""

import errno
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.agentfile import Agent, ScriptedAgent
from harness.category import categorised
from harness.checked import CheckError
from harness.checking import judge_recorded, read_trace
from harness.collecting import dump_before, gather, keep_sought, read_reported
from harness.evidence import Dump
from harness.facts import ConvertError
from harness.hiding import Hiding, traceback_text
from harness.judge import judge, tampered
from harness.judges import Judge, with_opinions
from harness.looseverdict import loosely_judged
from harness.modelagent import ModelAgent
from harness.observability import Measures, Watched, observe, unobserved
from harness.privatefolder import PrivateFolder, make_private_folder
from harness.redacted import hidden_result, recorded_assertions
from harness.results import VALID, TrialResult
from harness.rubrics import answered, with_rubric
from harness.runfolder import TrialFolder, as_text, make_trial_folder, make_way, write_new, write_pieces
from harness.scenario import Scenario
from harness.selection import kind_of
from harness.semantics.owasp import OwaspScenario
from harness.state import StateError
from harness.targetfile import Recorded
from harness.targets.context import Context
from harness.targets.conversation import Conversation
from harness.targets.deadline import TrialCancelledError
from harness.targets.ending import Ending
from harness.targets.fixtures import FixtureError
from harness.targets.fronts import fronts
from harness.targets.proxied import PreparationError, Prepared, prepare
from harness.targets.running import Run, ports_of, reachable, run_agent, unpointed
from harness.targets.streams import Streams
from harness.tracefile import trace_chunks
from harness.traceread import TraceFileError
from harness.verdict import Verdict
from proxy.otlp import Exporter
from proxy.spanfile import SpanFile, SpanFileError
from proxy.spans import SpanError

RUN_SPANS = "run.jsonl"
"""The span file that the harness writes itself."""

_OUR_OWN = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of a machine that lacks something."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A verdict, the gaps of the record and the doubts of it, and what could be observed."""

    verdict: Verdict
    gaps: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    measures: Measures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """All that a trial is made of. `cancel` is a descriptor that is readable once the trial is to stop.

    `private` is its temporary folder, which its maker takes away; None for one of its own making.
    `otlp` is where its proxies send copies of their spans; `exporter` sends those that are made in this process.
    `canaries` are those that its seeds plant, None for new ones. `judge` is asked for its opinion.
    """

    run_id: str
    run_folder: Path
    hiding: Hiding
    scenario: Scenario
    agent: Agent
    trial: int
    keep: bool = False
    cancel: int | None = None
    otlp: str | None = None
    exporter: Exporter | None = None
    judge: Judge | None = None
    loose: OwaspScenario | None = None
    private: Path | None = None
    canaries: Mapping[str, str] | None = None


def run_trial(plan: TrialPlan) -> TrialResult:
    """Run one trial and write its folder. Every process of it has ended when this returns; it raises only OSError."""
    began = time.monotonic()
    try:
        folder = make_trial_folder(plan.run_folder, plan.scenario.id, plan.trial)
    except FileExistsError:
        # The agent of another trial may have been there first.
        make_way(plan.run_folder / plan.scenario.id / str(plan.trial))
        folder = make_trial_folder(plan.run_folder, plan.scenario.id, plan.trial)
    made = (
        make_private_folder(keep=plan.hiding if plan.keep else None)
        if plan.private is None
        else PrivateFolder(plan.private, None)
    )
    private = made.path
    try:
        judged = _recorded(plan, folder) if isinstance(plan.agent, Recorded) else _run(plan, folder, private)
    finally:
        made.remove()
    result = TrialResult(
        scenario=plan.scenario.id,
        trial=plan.trial,
        verdict=judged.verdict,
        seconds=time.monotonic() - began,
        kind=kind_of(plan.agent),
        model=plan.agent.model_name if isinstance(plan.agent, ModelAgent) else None,
        folder=str(folder.path.relative_to(plan.run_folder)),
        gaps=judged.gaps,
        kept=str(private) if plan.keep else None,
        doubts=judged.doubts,
        target=plan.agent.target,
        measures=judged.measures or unobserved(f"the trial ended as {judged.verdict.status}"),
    )
    result = hidden_result(plan.hiding, result)
    try:
        write_new(folder.verdict, verdict_text(plan.run_id, result))
    except OSError as error:
        if not _is_damage(plan, error):
            raise
        said = tampered(judged.verdict.status, [_damage(error)], result.verdict.findings)
        result = hidden_result(plan.hiding, replace(result, verdict=said))
        with suppress(OSError):
            make_way(folder.verdict)
            write_new(folder.verdict, verdict_text(plan.run_id, result))
    return result


def verdict_text(run_id: str, result: TrialResult) -> str:
    """What stands in verdict.json."""
    return as_text({"schema_version": 1, "run_id": run_id, **result.as_json()})


def _run(plan: TrialPlan, folder: TrialFolder, private: Path) -> _Judged:
    hiding = plan.hiding
    context = Context(plan.run_id, plan.scenario.id, plan.trial, redact_key=hiding.key.hex(), secrets=hiding.values)
    prepared: Prepared | None = None
    before: dict[str, Dump] = {}
    try:
        scenario, ports = reachable(plan.scenario, plan.agent), ports_of(plan.agent)
        prepared = prepare(scenario, context, folder.spans, private, plan.otlp, plan.canaries, ports)
        if isinstance(plan.agent, ModelAgent):
            prepared = replace(prepared, agents=tuple(plan.agent.crew(plan.scenario.servers)))
        keep_sought(prepared, plan.scenario, folder)
        before = dump_before(prepared, folder, hiding)
        file = SpanFile.create_named(folder.spans, RUN_SPANS)
        file.tap = None if plan.exporter is None else plan.exporter.offer
        conversation = Conversation(context, file, plan.scenario.user_message, hiding)
        run = Run(plan.scenario, plan.agent, folder, private, hiding, plan.trial, plan.cancel)
        try:
            with _fronts(plan, prepared, Streams(folder, private, hiding)) as reached:
                began = time.monotonic()
                ending = run_agent(run, reached, context, conversation)
                ending = replace(ending, seconds=time.monotonic() - began)
        except TrialCancelledError as error:
            ending = Ending("cancelled", str(error))
        finally:
            lost = _close(conversation)
        if lost is not None and _is_damage(plan, lost):
            ending = replace(ending, damage=(*ending.damage, str(lost)))
        elif lost is not None:
            raise lost
    except (FixtureError, PreparationError, StateError) as error:
        ending = Ending("infra_error", str(error))
    except Exception as error:  # a fault of ours is the trial's status, never a lost trial
        sys.stderr.write(traceback_text(plan.hiding, error))
        ending = Ending("harness_error", f"{type(error).__name__}: {error}")
    if prepared is None:
        return _Judged(Verdict("error", ending.status, ending.reason))
    return _judge(plan, context, prepared, before, folder, ending)


def _fronts(plan: TrialPlan, prepared: Prepared, streams: Streams) -> AbstractContextManager[Prepared]:
    """The servers with what stands in front of them; several agents start that themselves, each its own."""
    if isinstance(plan.agent, ModelAgent):
        return nullcontext(prepared)
    return fronts(prepared, streams.errors, plan.cancel)


def _close(conversation: Conversation) -> SpanFileError | None:
    try:
        conversation.close()
    except SpanFileError as error:
        return error
    return None


def _judge(
    plan: TrialPlan,
    context: Context,
    prepared: Prepared,
    before: dict[str, Dump],
    folder: TrialFolder,
    ending: Ending,
) -> _Judged:
    gathered = None
    damage = list(ending.damage)
    try:
        gathered = gather(plan.scenario, context, prepared, before, folder, plan.hiding, ending)
    except Exception as error:  # of what an agent has written anything may come; told apart from our faults below
        if ending.status not in VALID or not _is_damage(plan, error):
            return _Judged(_unreadable(plan, ending, error), doubts=ending.doubts)
        damage.append(_damage(error))
    if gathered is None:
        return _Judged(_with_reason(tampered(ending.status, damage), ending), ending.doubts, ending.doubts)
    roster = plan.agent.roster(plan.scenario.servers) if isinstance(plan.agent, ModelAgent) else None
    evidence = replace(gathered.evidence, unpointed=unpointed(plan.scenario, plan.agent), roster=roster)
    try:
        assertions = recorded_assertions(plan.hiding, plan.scenario.assertions)
        assertions = with_rubric(assertions, plan.scenario.labels, plan.hiding.text)
        evidence = with_opinions(evidence, assertions, plan.judge)
        assertions = answered(assertions, evidence)
        if plan.loose is None:
            verdict = categorised(plan.scenario, evidence, judge(assertions, evidence, ending.status))
        else:
            verdict = loosely_judged(plan.loose, evidence.trace, read_reported(folder), ending.status)
        measures = observe(_watched(plan, ending), evidence, verdict, assertions)
    except Exception as error:  # a fault of ours, as in _run
        return _Judged(_unreadable(plan, ending, error), gathered.gaps, evidence.doubts)
    if damage and ending.status in VALID:
        verdict = _with_reason(tampered(ending.status, damage, verdict.findings), ending)
    elif ending.reason:
        verdict = replace(verdict, reason=ending.reason)
    return _Judged(verdict, gathered.gaps, evidence.doubts, measures)


def _watched(plan: TrialPlan, ending: Ending) -> Watched:
    return Watched(
        plan.agent.target, ending.seconds, ending.first_ms, isinstance(plan.agent, ScriptedAgent | ModelAgent)
    )


def _recorded(plan: TrialPlan, folder: TrialFolder) -> _Judged:
    """The verdict of a trace that stands for the agent: nothing is run, and no server is started."""
    assert isinstance(plan.agent, Recorded)
    try:
        trace = read_trace(plan.agent.file(plan.scenario.id))
    except CheckError as error:
        return _Judged(Verdict("error", "infra_error", str(error)))
    write_pieces(folder.trace, map(plan.hiding.text, trace_chunks(trace)))
    verdict, measures = judge_recorded(plan.scenario, trace, {}, plan.judge)
    if plan.loose is not None:
        verdict = loosely_judged(plan.loose, trace, None, "completed")
    return _Judged(verdict, trace.gaps, measures=measures)


def _with_reason(verdict: Verdict, ending: Ending) -> Verdict:
    return replace(verdict, reason=f"{ending.reason}; {verdict.reason}") if ending.reason else verdict


def _unreadable(plan: TrialPlan, ending: Ending, error: Exception) -> Verdict:
    """The verdict where something of the evidence is broken that no agent broke."""
    before = f"{ending.reason}; then " if ending.reason else ""
    if isinstance(error, StateError):
        return Verdict("error", "infra_error", f"{before}{error}")
    sys.stderr.write(traceback_text(plan.hiding, error))
    reason = f"the evidence cannot be read: {type(error).__name__}: {error}"
    return Verdict("error", "harness_error", f"{before}{reason}")


def _is_damage(plan: TrialPlan, error: Exception) -> bool:
    """Whether evidence that cannot be read or written counts as damaged by the agent: not where our disk is full.

    A program of somebody's ran with our rights on our files; steps of a file touch none. Else an agent could turn its
    failing trial into an error of ours, which no rate counts.
    """
    return kind_of(plan.agent) == "real" and not (isinstance(error, OSError) and error.errno in _OUR_OWN)


def _damage(error: Exception) -> str:
    match error:
        case StateError() | SpanError() | ConvertError() | TraceFileError():
            return str(error)
        case OSError():
            name = error.filename if isinstance(error.filename, str) else ""
            return f"{Path(name).name}: {error.strerror or error}"
        case _:
            return f"{type(error).__name__}: {error}"
