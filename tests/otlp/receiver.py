"""A receiver of OTLP over HTTP and gRPC, on opentelemetry-proto's generated services; it can be slow and rude."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Condition, Event, Thread
from time import monotonic

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from proxy.spanread import spans_of
from proxy.spans import JSON, Span


@dataclass
class Received:
    """What arrived. `answer` is the HTTP status given to each request, None: it is taken in and never answered."""

    answer: int | None = 200
    rejects: int = 0
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    let_go: Event = field(default_factory=Event)
    _more: Condition = field(default_factory=Condition)

    def take(self, raw: bytes) -> ExportTraceServiceResponse:
        request = ExportTraceServiceRequest.FromString(raw)
        with self._more:
            self.sizes.append(len(raw))
            if self.answer == 200:
                self.requests.append(request)
            self._more.notify_all()
        if self.answer is None:
            self.let_go.wait()
        response = ExportTraceServiceResponse()
        if self.rejects:
            response.partial_success.rejected_spans = self.rejects
            response.partial_success.error_message = "these are not liked"
        return response

    def wait(self, spans: int = 1, seconds: float = 60.0) -> None:
        """Wait until so many spans have arrived."""
        until = monotonic() + seconds
        with self._more:
            while len(self.spans) < spans:
                assert self._more.wait(max(until - monotonic(), 0)), f"{len(self.spans)} of {spans} spans arrived"

    def wait_for_request(self, seconds: float = 60.0) -> None:
        with self._more:
            assert self._more.wait_for(lambda: bool(self.sizes), seconds)

    @property
    def jaeger(self) -> JSON:
        """What arrived, as an answer of Jaeger's /api/v3/traces: hex ids, 64-bit numbers as text, enums as numbers."""
        resources: list[JSON] = []
        for request in self.requests:
            document = MessageToDict(request, use_integers_for_enums=True)
            for resource in document["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        for holder in (span, *span.get("links", ())):
                            for key in holder.keys() & {"traceId", "spanId", "parentSpanId"}:
                                holder[key] = b64decode(holder[key]).hex()
                resources.append(resource)
        return {"result": {"resourceSpans": resources}}

    @property
    def spans(self) -> list[Span]:
        return list(spans_of(self.jaeger, "what arrived"))


class _Servicer(TraceServiceServicer):
    def __init__(self, received: Received) -> None:
        self.received = received

    def Export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> ExportTraceServiceResponse:
        response = self.received.take(request.SerializeToString())
        match self.received.answer:
            case 503:
                context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
            case 413:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large")
            case _:
                pass
        return response


@contextmanager
def http_receiver(received: Received) -> Iterator[str]:
    """A receiver over HTTP; its URL, without a path."""

    connections: list[socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            received.headers.append({key.lower(): value for key, value in self.headers.items()})
            received.paths.append(self.path)
            response = received.take(decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw)
            body = response.SerializeToString()
            self.send_response(received.answer or 200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def process_request(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
            assert isinstance(request, socket)
            connections.append(request)
            super().process_request(request, client_address)

        def shutdown_request(self, request: socket | tuple[bytes, socket]) -> None:
            assert isinstance(request, socket)
            connections.remove(request)
            super().shutdown_request(request)

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that has gone away is what some tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            received.let_go.set()
            server.shutdown()
            thread.join()
            for connection in list(connections):
                with suppress(OSError):
                    connection.shutdown(SHUT_RDWR)


@contextmanager
def grpc_receiver(received: Received) -> Iterator[str]:
    """A receiver over gRPC; its URL."""
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    register: Callable[[TraceServiceServicer, grpc.Server], None] = add_TraceServiceServicer_to_server
    register(_Servicer(received), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        received.let_go.set()
        server.stop(None).wait()
