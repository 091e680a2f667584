"""Collects what a trial left: the spans as a trace, and each database before and after, and keeps a copy of all of it.

Refuses to know what the evidence is judged by.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.casefile import evidence_of, secret_variables
from harness.connections import RollCall
from harness.convert import convert
from harness.evidence import Dump, Evidence, ServerState
from harness.hiding import Hiding
from harness.jsontext import load_json
from harness.redacted import hidden_dump, hidden_journal, recorded_requests
from harness.reported import beside
from harness.runfolder import TrialFolder, as_text, write_new, write_pieces
from harness.scenario import FixtureServer, Scenario
from harness.secretcheck import checks_of
from harness.state import StateError, read_connections, read_journal, write_dump, write_journal
from harness.targets.context import Context
from harness.targets.ending import Ending
from harness.targets.fixtures import dump_fixture, journal_path
from harness.targets.proxied import Prepared, Upstream
from harness.tracefile import trace_chunks
from harness.traceread import TraceFileError
from proxy.plainfile import open_plain
from proxy.spanread import read_spans
from proxy.spans import JSON, Span


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence of one trial, and in which ways the record of it is not complete."""

    evidence: Evidence
    gaps: tuple[str, ...]


def keep_sought(prepared: Prepared, scenario: Scenario, folder: TrialFolder) -> None:
    """Write down what is looked for, so that the trial can be judged again: canaries, and how to know its secrets."""
    if prepared.canaries:
        write_new(folder.canaries, as_text(dict(prepared.canaries)))
    if checks := checks_of(secret_variables(scenario.expected), os.environ):
        write_new(folder.secrets, as_text(checks))


def dump_before(prepared: Prepared, folder: TrialFolder, hiding: Hiding) -> dict[str, Dump]:
    """Read and write down every database that we know, before the agent starts. Raises StateError."""
    dumps: dict[str, Dump] = {}
    for upstream in prepared.upstreams:
        dump = _dump(upstream)
        if dump is not None:
            dumps[upstream.id] = dump
            write_dump(folder.state(upstream.id, "before"), hidden_dump(hiding, dump))
    return dumps


def read_state(
    prepared: Prepared, before: Mapping[str, Dump], folder: TrialFolder, hiding: Hiding
) -> dict[str, ServerState]:
    """Read and write down every database and journal after all servers have ended. Raises StateError."""
    state: dict[str, ServerState] = {}
    for upstream in prepared.upstreams:
        after = _dump(upstream)
        if after is None or upstream.database is None:
            continue
        journal_file = journal_path(upstream.database)
        if not journal_file.is_file():
            raise StateError(f"{journal_file}: the journal is gone; something other than the server removed it")
        journal = read_journal(journal_file)
        write_dump(folder.state(upstream.id, "after"), hidden_dump(hiding, after))
        write_journal(folder.state(upstream.id, "journal"), hidden_journal(hiding, journal))
        state[upstream.id] = ServerState(
            before[upstream.id], after, recorded_requests(hiding, journal), hiding.evidence
        )
    return state


def read_starts(prepared: Prepared) -> dict[str, tuple[str | None, ...]]:
    """Of each server that keeps a journal the connections of its starts. Raises StateError."""
    return {
        upstream.id: read_connections(journal_path(upstream.database))
        for upstream in prepared.upstreams
        if upstream.database is not None
    }


def _dump(upstream: Upstream) -> Dump | None:
    match upstream.server, upstream.database:
        case FixtureServer(fixture=fixture), Path() as place:
            return dump_fixture(fixture, place)
        case _:
            return None


def read_reported(folder: TrialFolder) -> JSON:
    """What the target said of itself; None where it said nothing. Raises TraceFileError."""
    if not folder.reported.exists():
        return None
    try:
        with open_plain(folder.reported) as file:
            found: JSON = load_json(file.read())
    except (OSError, ValueError, RecursionError) as error:
        raise TraceFileError(f"{folder.reported.name}: cannot be read: {type(error).__name__}") from error
    return found


def gather(
    scenario: Scenario,
    context: Context,
    prepared: Prepared,
    before: Mapping[str, Dump],
    folder: TrialFolder,
    hiding: Hiding,
    ending: Ending,
) -> Gathered:
    """The evidence of a trial whose processes have all ended.

    Raises StateError, SpanError, ConvertError and TraceFileError for what cannot be read, and OSError for what cannot
    be written.
    """
    gaps: list[str] = []
    doubts: list[str] = list(ending.doubts)
    state = read_state(prepared, before, folder, hiding)
    started = read_starts(prepared)
    roll = RollCall(context, prepared.upstreams, prepared.agents)

    def spans() -> Iterator[Span]:
        yield from roll.watch(read_spans([folder.spans], gaps.append))
        doubts.extend(roll.doubts(started))
        gaps.extend(doubts)

    trace = convert(
        spans(),
        run_id=context.run_id,
        scenario_id=context.scenario_id,
        trial=context.trial,
        state="wire" if state else "none",
        notes=gaps,
    )
    said = read_reported(folder)
    trace = trace if said is None else beside(trace, said, folder.reported.name)
    write_pieces(folder.trace, trace_chunks(trace))
    evidence = evidence_of(
        scenario,
        trace,
        completed=ending.status == "completed",
        state=state,
        environment=os.environ,
        canaries=prepared.canaries,
        hiding=hiding,
        # Without servers there is no wire: what the target reports may fail it, and passes nothing.
        recorded=said is not None and not scenario.servers,
        live=True,
        doubts=tuple(doubts),
    )
    return Gathered(evidence, trace.gaps)
