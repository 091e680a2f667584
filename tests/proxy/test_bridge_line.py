"""The answer that a bridge makes: signs of life while there is no message, and an end for who does not read."""

import asyncio
from pathlib import Path

import pytest

from proxy.bridgeline import BridgeLine
from proxy.serverline import UpstreamError
from tests.proxy.bridgewires import bridged
from tests.proxy.httpwires import Client
from tests.proxy.test_bridge import silent
from tests.proxy.wires import call


def test_a_call_that_takes_long_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.bridgeline.FIRST", 0.0)

    with bridged(tmp_path, silent) as bridge, Client(bridge.port) as client:
        session = bridge.open()
        client.send("POST", "/mcp", call("ok").encode(), session)
        assert client.head().values("content-type") == ["text/event-stream"]
        assert client.until(b"\n\n") == b":\n\n"
        (server,) = bridge.children.servers
        server.result({"id": 1}, said="done")
        assert b"done" in client.until(b"done")


def test_a_stream_that_nobody_reads_is_broken_off_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.bridgeline.UNREAD", 100)

    async def flood() -> int:
        line = BridgeLine(lambda *_: asyncio.sleep(0))
        sent = 0
        while not line.over:
            line.message(b"{}")
            sent += 1
        with pytest.raises(UpstreamError, match="does not read"):
            await line.body()
        return sent

    assert 1 < asyncio.run(flood()) < 10
