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
from harness.trace import ToolCall, Trace
from harness.tracefile import call_to_json, load_trace, trace_chunks
from harness.traceread import TraceFileError
from harness.tracesource import SpanPath, TracePath, TraceSourceError, find_source
from harness.watching import Watch
from proxy import vocabulary as v
from proxy.spanread import Tail, read_spans
from proxy.spans import Span, SpanError
from proxy.visible import visible

PAUSE = 0.1
"""Seconds between two looks at span files that may have grown."""


def _note(text: str) -> None:
    click.echo(f"wiretrap trace: {visible(text)}", err=True)


class _Trials:
    """Lets spans through, and remembers of which trials those are that are chosen, and that are ours at all."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.seen: set[str] = set()
        self.ours: set[str] = set()

    def watch(self, spans: Iterable[Span]) -> Iterator[Span]:
        for span in spans:
            if span.scope == v.SCOPE:
                parts = [span.attributes.get(key) for key in (v.RUN_ID, v.SCENARIO_ID, v.TRIAL)]
                name = "/".join("-" if part is None else str(part) for part in parts)
                self.ours.add(name)
                if self.choice.takes(span):
                    self.seen.add(name)
            yield span


def _from_spans(path: Path, scenario: str | None, trial: int | None) -> Trace:
    torn: list[str] = []
    trials = _Trials(Choice(None, scenario, trial))
    trace = convert(
        trials.watch(read_spans([path], torn.append)),
        scenario_id=scenario,
        trial=trial,
        # Beside the spans of a trial lie the dumps of its databases.
        state="wire" if path.is_dir() and any(path.parent.glob("state/*.after.jsonl")) else "none",
        notes=torn,
    )
    if not trials.ours:
        _note(f"{path}: no span of ours is in it")
    elif not trials.seen:
        there = ", ".join(sorted(trials.ours))
        raise TraceSourceError(f"{path}: --scenario and --trial leave no span; there are (run/scenario/trial): {there}")
    if len(trials.seen) > 1:
        outside = all(name.endswith("/-/-") for name in trials.seen)
        names = ", ".join(sorted(name.removesuffix("/-/-") for name in trials.seen))
        _note(f"these are the calls of several {'starts of the proxy' if outside else 'trials'}: {names}")
    return trace


def _show(trace: Trace, *, text: bool) -> None:
    for gap in trace.gaps:
        # A proxy that still runs has written no end either, and the files do not tell the two apart.
        under_way = "; or it is still under way" if gap.endswith("its end was never written") else ""
        _note(f"{gap}{under_way}")
    for piece in (f"{line}\n" for line in as_lines(trace.tool_calls, trace.events)) if text else trace_chunks(trace):
        click.echo(piece, nl=False)


def _show_one(call: ToolCall, *, text: bool) -> None:
    if text:
        click.echo(aligned(row(call), LEAST))
        return
    shown = call_to_json(call)
    # The place in the trace is known only once all spans are there; a reason's `(seq N)` speaks of that one.
    for key in ("seq", "result_seq"):
        shown.pop(key, None)
    click.echo(json.dumps(shown, allow_nan=False))


class _Following:
    """Prints each call as it ends, of one file or folder after another."""

    def __init__(self, choice: Choice, *, text: bool) -> None:
        self.choice, self.text = choice, text
        self.begin()

    def begin(self) -> None:
        self.follower = Follower(self.choice)
        self.tails: dict[str, Tail] = {}

    def read(self, files: Iterable[Path]) -> None:
        spans: list[Span] = []
        for file in files:
            spans += self.tails.setdefault(str(file), Tail(str(file))).read()
        self._print(spans)
        sys.stdout.flush()

    def end(self) -> None:
        self._print(())
        for tail in self.tails.values():
            if tail.rest:
                _note(f"{Path(tail.path).name}: the last line is not whole ({len(tail.rest)} bytes)")
        if self.follower.open:
            _note(f"{self.follower.open} calls have no answer yet")

    def _print(self, spans: Iterable[Span]) -> None:
        for call in self.follower.take(spans):
            _show_one(call, text=self.text)


def _follow(path: Path, choice: Choice, *, text: bool) -> None:
    """Print each call as it ends, until a KeyboardInterrupt."""
    following = _Following(choice, text=text)
    try:
        watch = Watch(path, _note)
        root: Path | None = None
        while True:
            files = watch.look()
            if watch.root != root:
                if root is not None:
                    following.end()
                    following.begin()
                root = watch.root
            following.read(files)
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        following.end()
        raise


def _once(path: Path, scenario: str | None, trial: int | None, *, text: bool) -> None:
    match find_source(path, scenario, trial):
        case TracePath(path=file) if scenario is None and trial is None:
            _show(load_trace(file), text=text)
        case TracePath():
            raise TraceSourceError(f"{path}: is the trace of one trial; --scenario and --trial choose among spans")
        case SpanPath(path=spans):
            _show(_from_spans(spans, scenario, trial), text=text)


@click.command("trace", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option(
    "--text",
    is_flag=True,
    help="One line a call (time, agent, tool, arguments, outcome, decision, duration) and event of agents.",
)
@click.option("--follow", is_flag=True, help="Go on as spans arrive, one call a line when it ends, until Ctrl-C.")
@click.option("--scenario", metavar="ID", help="The scenario, where DIR is a run folder or FILE has several.")
@click.option("--trial", type=click.IntRange(min=1), metavar="N", help="The trial, likewise.")
def command(path: Path, text: bool, follow: bool, scenario: str | None, trial: int | None) -> None:
    """Show what the spans say, as a trace in JSON.

    DIR is a folder of span files, a trial folder or a run folder; FILE is a span file, an OTLP/JSON document, an answer
    of Jaeger's api_v3, or a trace. With --follow it may be still to come, and a folder of runs stands for the newest
    run that appears. Exit code 2 when it is none of these, 130 after Ctrl-C.
    """
    try:
        if not follow:
            _once(path, scenario, trial, text=text)
            return
        if path.is_file() and isinstance(find_source(path, None, None), TracePath):
            raise TraceSourceError(f"{path}: is a finished trace; --follow reads span files")
        _follow(path, Choice(None, scenario, trial), text=text)
    except (TraceSourceError, TraceFileError, SpanError, ConvertError) as error:
        _note(str(error))
        for line in error.listing if isinstance(error, TraceSourceError) else ():
            click.echo(f"  {visible(line)}", err=True)
        raise SystemExit(2) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None
