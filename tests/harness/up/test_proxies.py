"""The supervisor's end of the line to a proxy that does not always answer in time."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness.up import proxies
from harness.up.proxies import Proxy, SilentError
from harness.up.upfile import UpServer
from proxy.control import Governed, obey
from proxy.spans import JSON

DEADLINE = 60.0


@asynccontextmanager
async def supervised() -> AsyncIterator[tuple[Proxy, socket.socket]]:
    """A proxy's process that does nothing, and the far end of its line."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
    proxy = Proxy("x", UpServer((), "http://127.0.0.1:1/", {}, "internal", 0, None), process, reader, writer)
    try:
        yield proxy, theirs
    finally:
        proxy.tell(signal.SIGKILL)
        await process.wait()
        writer.close()


def test_a_proxy_that_was_silent_is_running_again_and_takes_policies_once_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policies: list[str | None] = []
    health: dict[str, JSON] = {"connections": 1, "calls": 2, "record_failure": None}

    async def story() -> list[JSON]:
        async with supervised() as (proxy, theirs):
            monkeypatch.setattr(proxies, "PATIENCE", 0.02)
            states = [(await proxy.health())["state"] for _ in range(2)]
            with pytest.raises(SilentError, match="server x: its proxy does not answer"):
                await proxy.reload(Path("lost"))
            monkeypatch.setattr(proxies, "PATIENCE", DEADLINE)
            obeying = asyncio.create_task(obey(theirs, Governed(policies.append, lambda: health, lambda reason: None)))
            await proxy.reload(Path("new"))
            found = await proxy.health()
            proxy.writer.close()
            await obeying
            return [*states, found["state"], found["calls"]]

    assert asyncio.run(story()) == ["silent", "silent", "running", 2]
    assert policies == ["new"]


def test_a_late_answer_is_not_taken_for_that_of_the_next_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> object:
        async with supervised() as (proxy, theirs):
            monkeypatch.setattr(proxies, "PATIENCE", 0.02)
            with pytest.raises(SilentError):
                await proxy.order("health")
            monkeypatch.setattr(proxies, "PATIENCE", DEADLINE)
            reader, writer = await asyncio.open_connection(sock=theirs)
            first = json.loads(await reader.readline())
            second = asyncio.create_task(proxy.order({"reload": None}))
            writer.write(json.dumps({"number": first["number"], "answer": {"late": True}}).encode() + b"\n")
            then = json.loads(await asyncio.wait_for(reader.readline(), DEADLINE))
            assert then == {"number": first["number"] + 1, "order": {"reload": None}}
            writer.write(json.dumps({"number": then["number"], "answer": {}}).encode() + b"\n")
            answer = await asyncio.wait_for(second, DEADLINE)
            writer.close()
            return answer

    assert asyncio.run(story()) == {}
