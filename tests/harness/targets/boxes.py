"""A black box over HTTP for tests: one handler in threads of this process, which says what a request gets."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from proxy.spans import JSON


class Asked(BaseHTTPRequestHandler):
    """One request, and ways to answer it."""

    def document(self) -> dict[str, JSON]:
        """The JSON that was posted."""
        found: JSON = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert isinstance(found, dict)
        return found

    def answer(self, body: bytes, kind: str = "application/json", status: int = 200, length: int | None = None) -> None:
        """A whole answer; with another `length` than it has, one that breaks off."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, *events: str) -> None:
        """Server-sent events, and the connection closed."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.end_headers()
        for event in events:
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()

    def log_message(self, format: str, *_arguments: object) -> None:
        """Nothing on stderr."""


@contextmanager
def box(handle: Callable[[Asked], None]) -> Iterator[str]:
    """The URL of a black box, without a path, while it runs."""

    class Handler(Asked):
        def do_POST(self) -> None:
            handle(self)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def deltas(*texts: str) -> list[str]:
    """Events of OpenAI's chat completions with these pieces of text, whole with their end."""
    pieces = [json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": None}]}) for text in texts]
    usage = {"prompt_tokens": 12, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}
    return [*pieces, json.dumps({"choices": [], "usage": usage}), "[DONE]"]
