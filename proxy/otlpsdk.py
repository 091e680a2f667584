"""Our spans as those of the OpenTelemetry SDK, and its exporters. It takes half a second to import.

Refuses to know queues and files. Spans are made directly: no sampler, limit or switch of the environment thins them
out.
"""

import logging
from collections.abc import Sequence

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from proxy import __version__
from proxy.endpoint import Endpoint
from proxy.mending import exportable
from proxy.spans import Span, SpanError

_KINDS = {1: SpanKind.INTERNAL, 2: SpanKind.SERVER, 3: SpanKind.CLIENT, 4: SpanKind.PRODUCER, 5: SpanKind.CONSUMER}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_QUIETED = ("opentelemetry.exporter", "urllib3")
"""Loggers whose words would go to stderr unredacted; ours says in one line what became of the export."""


class Heard(logging.Handler):
    """Keeps the last thing that the SDK complained of."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it, as one line."""
        self.last = " ".join(record.getMessage().split())[:300]


class Sender:
    """Sends spans to one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._heard = Heard()
        self._endpoint = endpoint
        self._status = 0
        self._rejected = 0
        self._failed_itself = False
        for name in _QUIETED:
            logger = logging.getLogger(name)
            logger.addHandler(self._heard)
            logger.propagate = False
        self._exporter = self._http(endpoint.url) if endpoint.http else _grpc(endpoint)

    def _http(self, url: str) -> SpanExporter:
        session = requests.Session()
        # The exporter itself takes a redirect, and spans that a backend rejects one by one, for success.
        session.hooks["response"].append(self._look)
        return HttpExporter(endpoint=url, session=session)

    def _look(self, response: requests.Response, **_: object) -> None:
        self._status = response.status_code
        self._rejected = 0
        if not response.ok or "protobuf" not in response.headers.get("Content-Type", ""):
            return
        try:
            partial = ExportTraceServiceResponse.FromString(response.content).partial_success
        except Exception:  # protobuf's own error; whoever answers so has taken the spans all the same
            return
        self._rejected = partial.rejected_spans
        if self._rejected:
            self._heard.last = " ".join(partial.error_message.split())[:300] or "rejected one by one"

    @property
    def reason(self) -> str:
        """Why not all of the batch was accepted, as the SDK or the backend said it last; "" where nothing was said."""
        if self._is_alone:
            return "nobody answered there; start the receiver, or give --otlp the URL of one that runs"
        return self._endpoint.without_query(self._heard.last)

    @property
    def _is_alone(self) -> bool:
        """Whether the batch reached nobody; over gRPC the SDK tells that in words alone, which are gRPC's own."""
        if self._failed_itself:
            return False
        if self._endpoint.http:
            return not self._status and bool(self._heard.last)
        return any(words in self._heard.last for words in ("failed to connect", "DEADLINE_EXCEEDED"))

    def send(self, spans: Sequence[ReadableSpan]) -> int:
        """Send a batch; how many of it were accepted. Blocks as long as the exporter tries, 10 s by default."""
        self._status = self._rejected = 0
        self._heard.last = ""
        self._failed_itself = False
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # whatever it is, it is only this batch that is lost
            self._heard.last = f"{type(error).__name__}: {error}"
            self._failed_itself = True
            return 0
        if result is not SpanExportResult.SUCCESS:
            return 0
        if 300 <= self._status < 400:
            self._heard.last = f"it answered with status {self._status}, a redirect"
            return 0
        return max(len(spans) - self._rejected, 0)

    def close(self) -> None:
        """Let go of the connection."""
        self._exporter.shutdown()


def _grpc(endpoint: Endpoint) -> SpanExporter:
    # Not before it is needed: it takes as long to import as all the rest.
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415  (as said above)
        OTLPSpanExporter,
    )

    return OTLPSpanExporter(endpoint=endpoint.url, insecure=not endpoint.secure)


def readable(span: Span) -> ReadableSpan:
    """A span of ours, mended and cut, as the SDK has it. Raises SpanError for one that OTLP has no place for."""
    kind = _KINDS.get(span.kind)
    if kind is None:
        raise SpanError(f"span {span.span_id}: kind {span.kind} is none that the exporter knows")
    if not (0 <= span.start_ns < 2**64 and 0 <= span.end_ns < 2**64):
        raise SpanError(f"span {span.span_id}: its times are no nanoseconds of 64 bits")
    fit = exportable(span)
    return ReadableSpan(
        name=fit.name,
        context=_context(fit.trace_id, fit.span_id),
        parent=_context(fit.trace_id, fit.parent_id) if fit.parent_id else None,
        resource=Resource({"service.name": fit.service}),
        attributes=dict(fit.attributes),
        links=[Link(_context(*link)) for link in fit.links],
        kind=kind,
        status=Status(StatusCode(fit.status), fit.message if fit.status == StatusCode.ERROR.value else None),
        start_time=fit.start_ns,
        end_time=fit.end_ns,
        instrumentation_scope=InstrumentationScope(fit.scope, __version__),
    )


def weight(span: ReadableSpan) -> int:
    """About how many bytes a span takes on the wire, and never fewer."""
    texts = [str(value) for value in (span.attributes or {}).values()]
    texts += [span.name, span.status.description or ""]
    return 400 + 80 * len(texts) + sum(len(text) if text.isascii() else len(text.encode()) for text in texts)


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=_SAMPLED)
