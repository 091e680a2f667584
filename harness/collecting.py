"""Collects what a trial left: the spans as a trace, and each database before and after, and keeps a copy of all of it.

Refuses to know what the evidence is judged by.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.casefile import evidence_of
from harness.convert import convert
from harness.evidence import Dump, Evidence, ServerState
from harness.hiding import Hiding
from harness.redacted import hidden_dump, hidden_journal, recorded_requests
from harness.runfolder import TrialFolder, write_new
from harness.scenario import FixtureServer, Scenario
from harness.state import StateError, read_journal, write_dump, write_journal
from harness.targets.context import Context
from harness.targets.fixtures import dump_fixture, journal_path
from harness.targets.proxied import Prepared, Upstream
from harness.tracefile import trace_text
from proxy.spanread import read_spans


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence of one trial, and in which ways the record of it is not complete."""

    evidence: Evidence
    gaps: tuple[str, ...]


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


def _dump(upstream: Upstream) -> Dump | None:
    match upstream.server, upstream.database:
        case FixtureServer(fixture=fixture), Path() as place:
            return dump_fixture(fixture, place)
        case _:
            return None


def gather(
    scenario: Scenario,
    context: Context,
    prepared: Prepared,
    before: Mapping[str, Dump],
    folder: TrialFolder,
    hiding: Hiding,
    *,
    completed: bool,
) -> Gathered:
    """The evidence of a trial whose processes have all ended. Raises StateError, SpanError and ConvertError."""
    torn: list[str] = []
    state = read_state(prepared, before, folder, hiding)
    trace = convert(
        read_spans([folder.spans], torn.append),
        run_id=context.run_id,
        scenario_id=context.scenario_id,
        trial=context.trial,
        state="wire" if state else "none",
        notes=torn,
    )
    write_new(folder.trace, trace_text(trace))
    evidence = evidence_of(
        scenario,
        trace,
        completed=completed,
        state=state,
        environment=os.environ,
        canaries=prepared.canaries,
        hiding=hiding,
    )
    return Gathered(evidence, trace.gaps)
