"""Stands in for the API of a model provider: it plays canned answers on 127.0.0.1, and keeps what it was asked."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Canned:
    """One answer; `cut` closes the connection before all that was announced was sent."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    body: JSON


@dataclass(slots=True)
class StandIn:
    url: str
    answers: list[Canned] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


def as_json(document: JSON, status: int = 200, **headers: str) -> Canned:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Canned(json.dumps(document).encode(), status, {"content-type": "application/json", **named})


def as_events(events: Sequence[JSON], *, named: bool = False, cut: bool = False) -> Canned:
    """Server-sent events; `named` gives each the name of its `type`, as Anthropic's have."""
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
        lines.append(f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return Canned("".join(lines).encode(), 200, {"content-type": "text/event-stream"}, cut)


@contextmanager
def stand_in() -> Iterator[StandIn]:
    made = StandIn("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            made.asked.append(Asked(self.path, headers, json.loads(body)))
            answer = made.answers.pop(0)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body) + (100 if answer.cut else 0)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
