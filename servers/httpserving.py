"""Serves a fixture over Streamable HTTP at /mcp, both eras, at 127.0.0.1. Names no fixture."""

import json
import socket
import sys
from pathlib import Path

import uvicorn

from servers.fixture import PlaceError
from servers.places import AnyFixture, open_place
from servers.serving import build_server


def serve_http(fixture: AnyFixture, path: Path, port: int) -> None:
    """Serve what lies at `path` until a signal comes; port 0 chooses one. One line of JSON on stdout has the url.

    Raises PlaceError where the place cannot be opened, or the port not be listened at. No journal entry has a
    connection: over HTTP nobody tells the server whose its requests are.
    """
    # Only of a socket that says it is TCP does asyncio take the delay out of small packets.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with open_place(path, fixture, None) as place, listening:
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(("127.0.0.1", port))
            listening.listen()
        except OSError as error:
            raise PlaceError(f"port {port} cannot be listened at: {error.strerror}; give another with --http") from None
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        sys.stdout.write(json.dumps({"url": url, "server": fixture.name}) + "\n")
        sys.stdout.flush()
        app = build_server(place).streamable_http_app()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
        server.run(sockets=[listening])
