"""The process of the proxy over HTTP: its port, its signals and its end.

Refuses to know what a request says.
"""

import asyncio
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import uvicorn

from proxy.allocation import give_large_back
from proxy.asking import Asking
from proxy.control import Governed, inherited, obey
from proxy.doors import Doors
from proxy.downstream import Application, Downstream
from proxy.http import HttpProxy
from proxy.httpwords import Origin
from proxy.judging import edits_answers
from proxy.options import Start
from proxy.relays import Relays
from proxy.saying import say
from proxy.seats import Seats
from proxy.spanfile import SpanFileError, make_folder
from proxy.spans import JSON
from proxy.tlstrust import trust
from proxy.upstream import Upstream

RECORD_FAILED = 74
"""Exit code when spans could not be written (EX_IOERR of sysexits.h)."""
STOP_GRACE = 1
"""Seconds that connections have to close when the proxy is told to stop."""
KEEP_ALIVE = 75
"""Seconds that an idle connection of a client is kept: longer than clients do, so that no request meets its end."""
_USUAL_PATHS = frozenset({"", "/", "/mcp", "/mcp/", "/sse"})
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class PortError(ValueError):
    """An address that cannot be listened at: which, and why."""


@dataclass(frozen=True, slots=True)
class Front:
    """What the proxy over HTTP is told: `path` is that of the URL, `names` and `origins` are let in besides our own.

    `ca` is a file of certificates that the server's may be signed by, besides the system's.
    """

    upstream: Origin
    path: str
    host: str
    port: int
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    ca: str = ""


class _Server(uvicorn.Server):
    """Without signal handlers of its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def check_folder(folder: str) -> None:
    """Make the span folder. Raises SpanFileError where nothing can be written to it."""
    try:
        make_folder(folder)
    except OSError as error:
        raise SpanFileError(f"the span folder {folder} cannot be written: {error}; name another with --spans") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SpanFileError(f"the span folder {folder} cannot be written; name another with --spans")


def make_asking(start: Start, version: str) -> Asking:
    """What reads and records what clients ask; `version` is ours."""
    relays = Relays(start, version)
    return Asking(Seats(relays.open, start.key), start.policy, relays.reload, relays.listed.mirrors)


def make_proxy(front: Front, start: Start, version: str) -> HttpProxy:
    """The application, with its connections to the server and to the record; `version` is ours."""
    doors = Doors(front.host, front.names, front.origins)
    upstream, asking = Upstream(front.upstream, trust(front.ca)), make_asking(start, version)
    edits = edits_answers(start.policy)
    return HttpProxy(upstream, asking, doors, edits=edits, waiting=start.waiting(), spoils=start.spoils)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 chooses one. Raises PortError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only of a socket that says it is TCP does asyncio take the delay out, which costs an event 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except (OSError, OverflowError) as error:
        listening.close()
        raise PortError(f"--host {host} --port {port}: cannot listen there: {error}") from None
    return listening


def address_of(listening: socket.socket, path: str) -> str:
    """The URL of a path at a listening socket, as a client on this machine has it."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (compared with, not bound to)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"


def path_shown(path: str) -> str:
    """A path as it is told on stderr: some have a secret in it, so no more of it than what others have too."""
    return path if path in _USUAL_PATHS else "/…"


def http_config(application: Application) -> uvicorn.Config:
    """How HTTP is spoken with clients: nothing is added to what goes through."""
    return uvicorn.Config(
        application,
        http=Downstream,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=STOP_GRACE,
    )


def make_server(proxy: HttpProxy) -> uvicorn.Server:
    """The HTTP server around the application."""
    return _Server(http_config(proxy))


async def run(proxy: HttpProxy, listening: socket.socket, started: Callable[[], None]) -> str:
    """Serve until a signal comes; its name. `started` is called as soon as requests are taken.

    A supervisor, if there is one, may ask for more. Raises ControlError.
    """
    control = inherited(os.environ)
    server = make_server(proxy)
    reasons: list[str] = []

    def stop(name: str) -> None:
        reasons.append(name)
        proxy.stop()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number.name)
    started()
    obeying = None
    if control is not None:
        governed = Governed(proxy.reload, lambda: health_of(proxy.asking.seats), stop)
        obeying = asyncio.create_task(obey(control, governed))
    await server.serve(sockets=[listening])
    if obeying is not None:
        obeying.cancel()
        await asyncio.gather(obeying, return_exceptions=True)
    return reasons[0] if reasons else "client_ended"


def health_of(seats: Seats) -> dict[str, JSON]:
    """How a proxy is: connections of the record that are open, calls of tools so far, and what went wrong with it."""
    return {"connections": len(seats), "calls": seats.calls, "record_failure": seats.failure}


def prepare_process() -> None:
    """Hold as many files open as we may, since each connection has its record, and no memory of large results."""
    give_large_back()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def announce(url: str, listening: socket.socket, server: str) -> None:
    """Say on stdout, as JSON, that requests are taken, and where."""
    sys.stdout.write(json.dumps({"url": url, "port": listening.getsockname()[1], "server": server}) + "\n")
    sys.stdout.flush()


def serve(front: Front, start: Start, version: str, *, quiet: bool) -> int:
    """Run the proxy until it is told to stop; its exit code. Raises PortError and SpanFileError where it cannot start.

    The one line on stdout is JSON: url and port where clients reach us, and the server's id.
    """
    check_folder(start.folder)
    listening = listen(front.host, front.port)
    prepare_process()
    url = address_of(listening, front.path)
    server, shown = start.identity.server_id, path_shown(front.path)
    proxy = make_proxy(front, start, version)

    def started() -> None:
        if not quiet:
            places = f"{address_of(listening, shown)} to {front.upstream}{shown}"
            say(f"server {server}, {places}, {start.said}", start.redactor)
        say(start.warning, start.redactor)
        announce(url, listening, server)

    if start.exporter is not None:
        start.exporter.start()
    reason = asyncio.run(run(proxy, listening, started))
    return close(proxy, start, reason)


def close(proxy: HttpProxy, start: Start, reason: str) -> int:
    """Close the record and what sends it on; the exit code."""
    seats = proxy.asking.seats
    exporter = start.exporter
    seats.close_all(reason, None if exporter is None else exporter.tally.dropped)
    if exporter is not None:
        say(exporter.wind_up(start.folder), start.redactor)
    if seats.failure:
        say(f"the record is not whole: {seats.failure}", start.redactor)
        return RECORD_FAILED
    return 0
