"""A fixture over Streamable HTTP, direct and behind the proxy."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import anyio
import pytest
from mcp import Client

from proxy import vocabulary as v
from tests.proxy.test_http_process import started

Mode = Literal["legacy", "2026-07-28"]


def command(db: Path, *more: str) -> list[str]:
    return [sys.executable, "-P", "-m", "servers.ticketing", "--db", str(db), *more]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    db = tmp_path / "ticketing.db"
    subprocess.run(command(db, "--init"), check=True)
    with subprocess.Popen(command(db, "--http", "0"), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


async def tickets(url: str, mode: Mode) -> object:
    async with Client(url, mode=mode) as client:
        await client.call_tool("update_ticket", {"ticket_id": 1, "status": "escalated"})
        return (await client.call_tool("get_ticket", {"ticket_id": 1})).structured_content


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_fixture_over_http_does_what_it_does_over_stdio(url: str, mode: Mode, tmp_path: Path) -> None:
    direct = anyio.run(tickets, url, mode)
    assert isinstance(direct, dict)
    assert direct["status"] == "escalated"
    with started(tmp_path, url) as proxy:
        assert anyio.run(tickets, proxy.url, mode) == direct
        proxy.end()
        named = [span.attributes[v.TOOL_NAME] for span in proxy.read("request") if v.TOOL_NAME in span.attributes]
        assert named == ["update_ticket", "get_ticket"]


@pytest.mark.parametrize("more", [("--http", "70000"), ("--http", "0", "--init")])
def test_a_port_that_makes_no_sense_is_an_error_of_use(tmp_path: Path, more: tuple[str, ...]) -> None:
    done = subprocess.run(command(tmp_path / "x.db", *more), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--http" in done.stderr
