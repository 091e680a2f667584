"""Sends a copy of the record on over OTLP while it is written: in a thread of its own, with a queue that has an end.

A copy never matters: it may lag, fail and lose spans, which are counted; nothing waits for it. Refuses to know frames
and files, and that the OpenTelemetry SDK exists before there is something to send.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol

from proxy.endpoint import Endpoint
from proxy.mending import shortened
from proxy.spanread import spans_of
from proxy.spans import Span, SpanError
from proxy.vocabulary import SCOPE

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

FLUSH = 1.4
"""Seconds that sending the rest may take at the end; some clients kill a server 2 s after they closed its stdin."""
QUEUE_SPANS = 4096
QUEUE_BYTES = 32 * 1024 * 1024
"""What waits to be sent, at the most and one line beyond; a span that finds the queue full is dropped, and counted."""
SMALL = 16 * 1024
"""A line no longer than this is not dropped for the sake of bytes: it may be the span that all others hang from."""
BATCH_SPANS = 64
BATCH_BYTES = 2 * 1024 * 1024
"""What is sent at once, at the most: receivers take no more than 4 MiB, and one span of ours has never more than 3."""
LINGER = 0.2
"""Seconds that a span waits for others to go with it, and the first one before the SDK is loaded."""
_SWITCH = 0.0001
"""Seconds after which a busy thread gives the interpreter up; it is 5 ms by default, which no frame must wait."""


class Sending(Protocol):
    """What sends batches: proxy.otlpsdk.Sender."""

    @property
    def reason(self) -> str:
        """What was last heard of why a batch is not accepted, "" where nothing was."""

    def send(self, spans: "list[ReadableSpan]") -> int:
        """Send; how many were accepted."""


class Tally(NamedTuple):
    """How many spans were offered, how many the receiver accepted so far, and how many are known to be lost."""

    offered: int
    accepted: int
    dropped: int

    @property
    def missing(self) -> int:
        """How many the receiver is not known to have."""
        return self.offered - self.accepted


class Exporter:
    """One stream of span lines to one receiver. `offer` never blocks and never raises."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.reason = ""
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._finishing = Event()
        self._done = Event()
        # Each of these is written by one side only, so that no lock is needed.
        self._offered = self._refused = self._bytes_in = 0
        self._accepted = self._failed = self._bytes_out = 0
        self._ended = False
        self._sender: Sending | None = None

    def offer(self, line: str | bytes) -> None:
        """Take a line of the record that was just written."""
        self._offered += 1
        text = line if isinstance(line, str) else line.decode()
        full = self._bytes_in - self._bytes_out >= QUEUE_BYTES
        if self._lines.qsize() >= QUEUE_SPANS or (full and len(text) > SMALL):
            self._refused += 1
            return
        self._bytes_in += len(text)
        self._lines.put(text)

    def start(self) -> None:
        """Begin to send; spans may have been offered before. Not before the server was forked (wire rule 11)."""
        Thread(target=self._run, name="otlp", daemon=True).start()

    def finish(self) -> None:
        """Nothing more is offered: send what is left, and end."""
        self._finishing.set()
        self._lines.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait until all was tried after `finish`; whether it was."""
        return self._done.wait(seconds)

    def seconds_left(self, since: float) -> float:
        """How long to wait, of FLUSH seconds that began at `since` (CLOCK_MONOTONIC)."""
        return max(since + FLUSH - monotonic(), 0.0)

    def wind_up(self, again: str) -> str:
        """End, giving what is left FLUSH seconds; what to say then, as `shortfall` does."""
        self.finish()
        self.wait(FLUSH)
        return self.shortfall(again)

    @property
    def tally(self) -> Tally:
        """The numbers so far."""
        return Tally(self._offered, self._accepted, self._refused + self._failed)

    def shortfall(self, again: str) -> str:
        """What to say at the end where not all arrived, else ""; `again` is what `wiretrap export` is to be given."""
        tally = self.tally
        if not tally.missing:
            return ""
        heard = "" if self._sender is None else self._sender.reason
        why = self.reason or heard or ("the queue was full" if self._refused else "the time was up")
        return (
            f"export: {tally.missing} of {tally.offered} spans are not known to have arrived at {self.endpoint.shown}"
            f" ({why}); the record has them: wiretrap export {again} --otlp URL"
        )

    def _run(self) -> None:
        try:
            first = self._lines.get()
            self._ended = first is None
            if first is not None:
                # What has just begun has better things to do than to load a large library.
                self._finishing.wait(LINGER)
                sys.setswitchinterval(_SWITCH)
                self._send_all(first)
        except Exception as error:  # the copy is lost, the record is not
            self.reason = self.endpoint.without_query(f"{type(error).__name__}: {error}")
            while not self._ended and self._lines.get() is not None:
                self._failed += 1
        finally:
            self._done.set()

    def _send_all(self, first: str) -> None:
        from proxy.otlpsdk import Sender  # noqa: PLC0415  (half a second, and only in this thread)

        self._sender = sender = Sender(self.endpoint)
        for batch in batches(self._spans(first), self._lost):
            accepted = sender.send(batch)
            self._accepted += accepted
            self._failed += len(batch) - accepted
            if accepted < len(batch):
                self.reason = sender.reason or "no reason was given"
        sender.close()

    def _lost(self, why: str) -> None:
        self._failed += 1
        self.reason = why

    def _spans(self, first: str) -> Iterator[Span | None]:
        """The spans as they come; None where it is time to send those that have come."""
        line: str | None = first
        while line is not None:
            self._bytes_out += len(line)
            yield from spans_of(json.loads(shortened(line)), "a span that was just written")
            try:
                line = self._lines.get_nowait()
            except Empty:
                yield None
                line = self._lines.get()
                if line is not None:
                    # Whoever has just written it is about to send a frame on, and must not share the processor now.
                    self._finishing.wait(LINGER)
        self._ended = True


def batches(spans: Iterable[Span | None], lost: Callable[[str], None]) -> Iterator["list[ReadableSpan]"]:
    """Spans of ours in batches that receivers take; None sends what there is.

    `lost` hears of each that cannot be sent.
    """
    from proxy.otlpsdk import readable, weight  # noqa: PLC0415  (as above)

    batch: list[ReadableSpan] = []
    size = 0
    for span in spans:
        if span is not None:
            if span.scope != SCOPE:
                lost(f"span {span.span_id} is of scope {span.scope!r}, not ours")
                continue
            try:
                made = readable(span)
            except SpanError as error:
                lost(str(error))
                continue
            heavy = weight(made)
            if batch and size + heavy > BATCH_BYTES:
                yield batch
                batch, size = [], 0
            batch.append(made)
            size += heavy
        if batch and (span is None or len(batch) == BATCH_SPANS):
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
