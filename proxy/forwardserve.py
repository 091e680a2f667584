"""The process of the forward proxy: its servers by its options, its port, its signals and its end.

Refuses to know what a request says, and what becomes of a connection.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from proxy.context import Context
from proxy.forward import Forward, Watched
from proxy.httpserve import (
    RECORD_FAILED,
    SIGNALS,
    address_of,
    check_folder,
    listen,
    prepare_process,
)
from proxy.judging import edits_answers
from proxy.options import Start, start
from proxy.policy import TRUST_LABELS
from proxy.relays import Relays
from proxy.routes import Entry, RouteError, Routes, read_entry
from proxy.saying import say
from proxy.sharedoptions import Common, Shared
from proxy.switchboard import Switchboard
from proxy.tlstrust import trust

if TYPE_CHECKING:
    from proxy.certificates import Authority
    from proxy.redact import Redactor

HOST = "127.0.0.1"
"""Where it listens, and nowhere else: whoever reaches a forward proxy reaches all that this machine does."""


class Plan(NamedTuple):
    """What the options of the forward proxy come to."""

    routes: Routes
    starts: Mapping[str, Start]
    entries: tuple[Entry, ...]


def read_plan(
    servers: Sequence[str],
    trusts: Sequence[str],
    options: Common,
    context: Context,
    key: bytes,
    redactor: "Redactor | None",
) -> Plan:
    """The servers that are named by options, each with its start. Raises ValueError where an option cannot be used."""
    entries = tuple(read_entry(text) for text in servers)
    ids = tuple(dict.fromkeys(entry.server for entry in entries))
    labels = _labels(trusts, ids)
    starts: dict[str, Start] = {}
    for server in ids:
        told: Shared = {**options, "server": server, "trust": labels.get(server, "third_party"), "faults_file": None}
        if starts:
            told["otlp"] = None
        made = start("http", told, context, key, redactor, beside=ids)
        first = next(iter(starts.values()), made)
        starts[server] = made._replace(exporter=first.exporter)
        # All of them are one run, also where nobody named it.
        context = context._replace(run_id=made.identity.run_id)
    return Plan(Routes(entries), starts, entries)


def _labels(trusts: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in trusts:
        server, _, label = text.partition("=")
        if server not in ids or label not in TRUST_LABELS:
            raise RouteError(
                f"--trust {text}: write it as ID=LABEL, with an ID of --server and a LABEL of {', '.join(TRUST_LABELS)}"
            )
        labels[server] = label
    return labels


async def run(board: Switchboard, listening: socket.socket, started: Callable[[], None]) -> str:
    """Serve until a signal comes; its name. `started` is called as soon as requests are taken."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[str] = loop.create_future()

    def stop(name: str) -> None:
        if not told.done():
            told.set_result(name)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number.name)
    accepting = asyncio.create_task(board.accept(listening))
    started()
    reason = await told
    accepting.cancel()
    await asyncio.gather(accepting, return_exceptions=True)
    listening.close()
    await board.stop(reason)
    return reason


def serve(
    plan: Plan, port: int, authority: "Authority | None", upstream_ca: str | None, version: str, *, quiet: bool
) -> int:
    """Run the proxy until it is told to stop; its exit code. Raises ValueError where it cannot start.

    The one line on stdout is JSON: url and port where clients reach us, and the ids of the servers.
    """
    starts = plan.starts
    first = next(iter(starts.values()))
    exporter, redactor = first.exporter, first.redactor
    tls = trust(upstream_ca or "")
    check_folder(first.folder)
    listening = listen(HOST, port)
    prepare_process()
    url = address_of(listening, "")
    watched = {
        server: Watched(one.policy, Relays(one, version), one.key, edits_answers(one.policy), one.waiting())
        for server, one in starts.items()
    }
    forward = Forward(plan.routes, watched, listening.getsockname()[1], tls)
    board = Switchboard(forward, authority, lambda text: say(text, redactor))
    if exporter is not None:
        tally = exporter.tally
        board.not_exported = lambda: tally.dropped

    def started() -> None:
        if not quiet:
            places = ", ".join(f"{server} at {place_shown(host, number)}" for server, host, number in plan.entries)
            say(f"forward proxy {url}, {places}, {first.said}", redactor)
        if authority is not None:
            say(
                f"clients have to trust {authority.path}: SSL_CERT_FILE for Python, NODE_EXTRA_CA_CERTS for Node",
                redactor,
            )
        for one in starts.values():
            say(one.warning, redactor)
        sys.stdout.write(json.dumps({"url": url, "port": forward.port, "servers": list(starts)}) + "\n")
        sys.stdout.flush()

    if exporter is not None:
        exporter.start()
    reason = asyncio.run(run(board, listening, started))
    failure = forward.close_all(reason, board.not_exported()) or board.failure
    if exporter is not None:
        say(exporter.wind_up(first.folder), redactor)
    if failure:
        say(f"the record is not whole: {failure}", redactor)
        return RECORD_FAILED
    return 0


def place_shown(host: str, port: int | None) -> str:
    """A host as an option has it."""
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"
