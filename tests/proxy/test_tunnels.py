"""Sockets of the forward proxy: whoever is cancelled, at whatever turn of the loop, leaves none of them open."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from proxy import tunnels
from proxy.forward import Forward
from proxy.routes import Routes, Target
from proxy.switchboard import Switchboard
from proxy.tunnels import accepted, dial_for
from tests.proxy.forwardwires import forwarded
from tests.proxy.httpupstream import WAIT

TURNS = 12
"""More turns of a loop than any of these takes from its beginning to its end."""


async def cancelled_after(turns: int, task: "asyncio.Task[socket.socket]") -> socket.socket | None:
    """What a task came to that is cancelled after some turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        return await task
    return None


@pytest.mark.parametrize("turns", range(TURNS))
def test_a_dial_that_is_cancelled_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    made: list[socket.socket] = []
    others: list[socket.socket] = []

    async def dial(target: Target) -> socket.socket:
        await asyncio.sleep(0)
        one, other = socket.socketpair()
        made.append(one)
        others.append(other)
        return one

    # The turn in which a connection is there is not for a test to choose where the system makes it.
    monkeypatch.setattr(tunnels, "dial", dial)

    async def go() -> socket.socket | None:
        return await cancelled_after(turns, asyncio.create_task(dial_for(client, Target("x", 1))))

    client, agent = socket.socketpair()
    client.setblocking(False)
    with client, agent:
        found = asyncio.run(go())
        still_open = [one for one in made if one.fileno() >= 0]
        assert still_open == ([] if found is None else [found])
        for one in (*made, *others):
            one.close()
    assert turns < TURNS - 1 or found is not None


@pytest.mark.parametrize("turns", range(TURNS))
def test_a_client_that_connects_while_nobody_is_taken_any_more_is_taken_or_left(turns: int) -> None:
    async def go() -> socket.socket | None:
        taking = asyncio.create_task(accepted(listening))
        await asyncio.sleep(0)
        with socket.create_connection(listening.getsockname(), WAIT):
            found = await cancelled_after(turns, taking)
            if found is None:
                # Still there for whoever asks next: it was not taken and lost.
                found = listening.accept()[0]
            found.close()
            return found

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        assert asyncio.run(go()) is not None


@pytest.mark.parametrize("turns", range(TURNS))
def test_a_board_that_stops_closes_the_connections_that_it_has_just_taken(turns: int) -> None:
    async def go() -> None:
        board = Switchboard(Forward(Routes([]), {}, 0), None, lambda text: None)
        accepting = asyncio.create_task(board.accept(listening))
        await asyncio.sleep(0)
        with socket.create_connection(listening.getsockname(), WAIT) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            await board.stop("SIGTERM")
            listening.close()
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""

    with socket.create_server(("127.0.0.1", 0)) as listening:
        asyncio.run(go())


def test_a_tunnel_breaks_off_whose_server_is_not_reached_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Event()

    async def dial(target: Target) -> socket.socket:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(tunnels, "dial", dial)
    with forwarded(tmp_path) as (proxy, _), proxy.client("tunnel") as client:
        client.socket.sendall(b"\x16\x03")
        proxy.wait_for("unread")
        assert begun.wait(WAIT)
        proxy.close()
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)
