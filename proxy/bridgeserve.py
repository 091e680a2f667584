"""The process of a bridge: its port, its signals, its children and its end. Refuses to know what a request says."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.bridge import Bridge, BridgeProxy
from proxy.doors import Doors
from proxy.httpserve import (
    address_of,
    announce,
    check_folder,
    close,
    listen,
    make_asking,
    path_shown,
    prepare_process,
    run,
)
from proxy.judging import edits_answers
from proxy.nursery import Nursery, check_command
from proxy.options import Start
from proxy.saying import say


@dataclass(frozen=True, slots=True)
class BridgeFront:
    """Where a bridge listens: `path` is that of MCP, `names` and `origins` are let in besides our own."""

    path: str
    host: str
    port: int
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


def make_bridge(front: BridgeFront, start: Start, version: str, nursery: Nursery) -> BridgeProxy:
    """The application; `version` is ours. Call it where the event loop runs that it is for."""
    doors = Doors(front.host, front.names, front.origins)
    bridge = Bridge(nursery, front.path.encode())
    asking, edits = make_asking(start, version), edits_answers(start.policy)
    return BridgeProxy(bridge, asking, doors, edits=edits, waiting=start.waiting(), spoils=start.spoils)


def serve(front: BridgeFront, command: Sequence[str], start: Start, version: str, *, quiet: bool) -> int:
    """Run the bridge until it is told to stop; its exit code.

    Raises PortError, SpanFileError and StartError where it cannot start. The one line on stdout is JSON: url and port
    where clients reach us, and the server's id.
    """
    check_command(command)
    check_folder(start.folder)
    listening = listen(front.host, front.port)
    prepare_process()
    url = address_of(listening, front.path)
    server = start.identity.server_id
    nursery = Nursery(command)

    def started() -> None:
        if not quiet:
            say(
                f"server {server}, {address_of(listening, path_shown(front.path))} to {command[0]}, {start.said}",
                start.redactor,
            )
        say(start.warning, start.redactor)
        announce(url, listening, server)

    async def serving() -> tuple[BridgeProxy, str]:
        # Children are forked by this thread, which outlives them (wire rule 11).
        proxy = make_bridge(front, start, version, nursery)
        try:
            return proxy, await run(proxy, listening, started)
        finally:
            await proxy.bridge.closed()

    if start.exporter is not None:
        start.exporter.start()
    proxy, reason = asyncio.run(serving())
    return close(proxy, start, reason)
