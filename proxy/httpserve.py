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
from time import monotonic

import uvicorn

from proxy.asking import Asking
from proxy.downstream import Downstream
from proxy.http import HttpProxy
from proxy.httpwords import Doors, Origin
from proxy.ledger import random_hex
from proxy.options import Start
from proxy.relay import Relay
from proxy.saying import say
from proxy.seats import Seats
from proxy.spanfile import SpanFile, SpanFileError, make_folder
from proxy.upstream import Upstream

RECORD_FAILED = 74
"""Exit code when spans could not be written (EX_IOERR of sysexits.h)."""
STOP_GRACE = 1
"""Seconds that connections have to close when the proxy is told to stop."""
KEEP_ALIVE = 75
"""Seconds that an idle connection of a client is kept: longer than clients do, so that no request meets its end."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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


def make_proxy(front: Front, start: Start, version: str) -> HttpProxy:
    """The application, with its connections to the server and to the record; `version` is ours."""
    policy = start.policy

    def open_relay() -> Relay:
        identity = start.identity._replace(connection=random_hex(16))
        spans = SpanFile.create(start.folder, identity.server_id)
        if start.exporter is not None:
            spans.tap = start.exporter.offer
        return Relay(identity, policy, version, spans, start.redactor, splice=start.splice)

    edits = policy is not None and policy.in_force and (policy.hides or "deny" in policy.client_requests.values())
    doors = Doors(front.host, front.names, front.origins)
    return HttpProxy(
        Upstream(front.upstream, front.ca), Asking(Seats(open_relay, start.key), policy), doors, edits=edits
    )


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


def make_server(proxy: HttpProxy) -> uvicorn.Server:
    """The HTTP server around the application, which adds nothing to what goes through."""
    return _Server(
        uvicorn.Config(
            proxy,
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
    )


async def run(proxy: HttpProxy, listening: socket.socket, started: Callable[[], None]) -> str:
    """Serve until a signal comes; its name. `started` is called as soon as requests are taken."""
    server = make_server(proxy)
    reasons: list[str] = []

    def stop(name: str) -> None:
        reasons.append(name)
        proxy.stop()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number.name)
    started()
    await server.serve(sockets=[listening])
    return reasons[0] if reasons else "client_ended"


def raise_limit() -> None:
    """Have as many files open as we may: each connection has its record."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve(front: Front, start: Start, version: str, *, quiet: bool) -> int:
    """Run the proxy until it is told to stop; its exit code. Raises PortError and SpanFileError where it cannot start.

    The one line on stdout is JSON: url and port where clients reach us, and the server's id.
    """
    check_folder(start.folder)
    listening = listen(front.host, front.port)
    raise_limit()
    url = address_of(listening, front.path)
    server = start.identity.server_id
    proxy = make_proxy(front, start, version)

    def started() -> None:
        if not quiet:
            say(f"server {server}, {url} to {front.upstream}{front.path}, {start.said}", start.redactor)
        say(start.warning, start.redactor)
        sys.stdout.write(json.dumps({"url": url, "port": listening.getsockname()[1], "server": server}) + "\n")
        sys.stdout.flush()

    exporter = start.exporter
    if exporter is not None:
        exporter.start()
    reason = asyncio.run(run(proxy, listening, started))
    seats = proxy.asking.seats
    seats.close_all(reason, None if exporter is None else exporter.tally.dropped)
    if exporter is not None:
        ended = monotonic()
        exporter.finish()
        exporter.wait(exporter.seconds_left(ended))
        say(exporter.shortfall(start.folder), start.redactor)
    if seats.failure:
        say(f"the record is not whole: {seats.failure}", start.redactor)
        return RECORD_FAILED
    return 0
