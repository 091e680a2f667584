"""`wiretrap export SPANS…`: send recorded spans on over OTLP, with the ids that they have in the files.

Refuses to know what spans say.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.tracesource import TraceSourceError, span_paths
from proxy.endpoint import Endpoint, EndpointError, parse_endpoint
from proxy.otlp import batches
from proxy.spanread import read_spans
from proxy.spans import Span, SpanError
from proxy.visible import visible
from proxy.vocabulary import SCOPE

PATIENCE = 3
"""Batches in a row of which nothing was accepted before the rest is not tried: the exporter tried each for 10 s."""


def _note(text: str) -> None:
    click.echo(f"wiretrap export: {visible(text)}", err=True)


class _Counted:
    """The spans of ours in some files, counted as they are read."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.ours = 0
        self.others = 0
        self.broken = 0

    def __iter__(self) -> Iterator[Span]:
        for span in read_spans(self.paths, _note, self._left_out):
            if span.scope == SCOPE:
                self.ours += 1
                yield span
            else:
                self.others += 1

    def _left_out(self, error: SpanError) -> None:
        self.broken += 1
        _note(f"{error}; the rest of the file is not sent")


class _Losses:
    """What was not accepted, said once for all batches in a row that failed for the same reason."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.lost = self.tried = 0
        self.reason = ""

    def add(self, lost: int, tried: int, reason: str) -> None:
        """Spans of one batch; the reason is the receiver's or ours, "" where none was given."""
        if reason != self.reason:
            self.say()
        self.reason = reason
        self.lost += lost
        self.tried += tried

    def say(self) -> None:
        """Say what was not said yet."""
        if self.lost:
            why = self.reason or "no reason was given"
            _note(f"{self.lost} of {self.tried} spans were not accepted by {self.endpoint.shown}: {why}")
        self.lost = self.tried = 0


@click.command("export", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SPANS...")
@click.option(
    "--otlp",
    required=True,
    metavar="URL",
    help="The receiver: http:// and https:// over HTTP, grpc:// and grpcs:// over gRPC.",
)
def command(paths: tuple[Path, ...], otlp: str) -> None:
    """Send recorded spans on over OTLP, with the ids, parents, links and times that they have in the files.

    SPANS is a span file, a folder of them, a trial folder or a run folder. The exit code is 0 when all were accepted, 1
    when some were not, and 2 when the command or a file is wrong.
    """
    try:
        endpoint = parse_endpoint(otlp)
        spans = _Counted([found for path in paths for found in span_paths(path)])
        # Only now is it sure that something is to be sent.
        from proxy.otlpsdk import Sender  # noqa: PLC0415  (it takes half a second to import)

        sender = Sender(endpoint)
        losses = _Losses(endpoint)
        accepted = failures = 0
        for batch in batches(spans, _note):
            if failures >= PATIENCE:
                continue
            taken = sender.send(batch)
            accepted += taken
            failures = 0 if taken else failures + 1
            if taken < len(batch):
                losses.add(len(batch) - taken, len(batch), sender.reason)
        losses.say()
        if failures >= PATIENCE:
            _note("the rest is not tried")
        sender.close()
    except (EndpointError, TraceSourceError, SpanError) as error:
        _note(str(error))
        raise SystemExit(2) from error
    if spans.others:
        _note(f"{spans.others} spans of other instrumentations were left out")
    if not spans.ours:
        if not spans.broken:
            _note("no span of ours is in it")
        raise SystemExit(2)
    click.echo(f"{accepted} of {spans.ours} spans accepted by {endpoint.shown}")
    raise SystemExit(2 if spans.broken else 0 if accepted == spans.ours else 1)
