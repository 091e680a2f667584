"""`wiretrap trace DIR|FILE`: show spans as a trace, as JSON or as one line a call, once or while they still arrive.

Refuses to know how spans become calls.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from harness.convert import convert
from harness.facts import ConvertError
from harness.following import Follower
from harness.gathering import Choice
from harness.report.calltable import LEAST, aligned, as_lines, row
from harness.report.visible import visible
from harness.trace import ToolCall, Trace
from harness.tracefile import call_to_json, load_trace, trace_chunks
from harness.traceread import TraceFileError
from harness.tracesource import SpanPath, TracePath, TraceSourceError, find_source
from proxy import vocabulary as v
from proxy.spanread import Tail, files_of, read_spans
from proxy.spans import Span, SpanError

PAUSE = 0.1
"""Seconds between two looks at span files that may have grown."""


def _note(text: str) -> None:
    click.echo(f"wiretrap trace: {visible(text)}", err=True)


class _Trials:
    """Lets spans through, and remembers of which trials they are."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.seen: set[str] = set()

    def watch(self, spans: Iterable[Span]) -> Iterator[Span]:
        for span in spans:
            if span.scope == v.SCOPE and self.choice.takes(span):
                parts = [span.attributes.get(key) for key in (v.RUN_ID, v.SCENARIO_ID, v.TRIAL)]
                self.seen.add("/".join("-" if part is None else str(part) for part in parts))
            yield span


def _from_spans(path: Path, scenario: str | None, trial: int | None) -> Trace:
    torn: list[str] = []
    # A folder was chosen by its name; only a file may hold the spans of several trials.
    trials = _Trials(Choice(None, scenario, trial) if path.is_file() else Choice())
    trace = convert(
        trials.watch(read_spans([path], torn.append)),
        scenario_id=trials.choice.scenario_id,
        trial=trials.choice.trial,
        # Beside the spans of a trial lie the dumps of its databases.
        state="wire" if path.is_dir() and any(path.parent.glob("state/*.after.jsonl")) else "none",
        notes=torn,
    )
    if not trials.seen:
        _note(f"{path}: no span of ours is in it")
    if len(trials.seen) > 1:
        _note(f"these are the calls of several trials: {', '.join(sorted(trials.seen))}")
    return trace


def _show(trace: Trace, *, text: bool) -> None:
    for gap in trace.gaps:
        _note(gap)
    for piece in (f"{line}\n" for line in as_lines(trace.tool_calls)) if text else trace_chunks(trace):
        click.echo(piece, nl=False)


def _show_one(call: ToolCall, *, text: bool) -> None:
    click.echo(aligned(row(call), LEAST) if text else json.dumps(call_to_json(call), allow_nan=False))


def _follow(path: Path, choice: Choice, *, text: bool) -> None:
    """Print each call as it ends, until a KeyboardInterrupt."""
    follower = Follower(choice)
    tails: dict[str, Tail] = {}
    try:
        while True:
            spans: list[Span] = []
            for name in files_of([path]):
                spans += tails.setdefault(name, Tail(name)).read()
            for call in follower.take(spans):
                _show_one(call, text=text)
            sys.stdout.flush()
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        for call in follower.take(()):
            _show_one(call, text=text)
        for tail in tails.values():
            if tail.rest:
                _note(f"{Path(tail.path).name}: the last line is not whole ({len(tail.rest)} bytes)")
        if follower.open:
            _note(f"{follower.open} calls have no answer yet")
        raise


@click.command("trace", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option(
    "--text", is_flag=True, help="One line a call: time, agent, tool, arguments, outcome, decision, duration."
)
@click.option("--follow", is_flag=True, help="Go on as spans arrive, one call a line when it ends, until Ctrl-C.")
@click.option("--scenario", metavar="ID", help="The scenario, where DIR is a run folder or FILE has several.")
@click.option("--trial", type=click.IntRange(min=1), metavar="N", help="The trial, likewise.")
def command(path: Path, text: bool, follow: bool, scenario: str | None, trial: int | None) -> None:
    """Show what the spans say, as a trace in JSON.

    DIR is a folder of span files, a trial folder or a run folder; FILE is a span file, an OTLP/JSON document, an answer
    of Jaeger's api_v3, or a trace. Exit code 2 when it is none of these, 130 after Ctrl-C.
    """
    try:
        match find_source(path, scenario, trial, waiting=follow):
            case TracePath() if follow:
                raise TraceSourceError(f"{path}: is a finished trace; --follow reads span files")
            case TracePath(path=file):
                _show(load_trace(file), text=text)
            case SpanPath(path=spans) if follow:
                _follow(spans, Choice(None, scenario, trial) if spans.is_file() else Choice(), text=text)
            case SpanPath(path=spans):
                _show(_from_spans(spans, scenario, trial), text=text)
    except (TraceSourceError, TraceFileError, SpanError, ConvertError) as error:
        _note(str(error))
        raise SystemExit(2) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None
