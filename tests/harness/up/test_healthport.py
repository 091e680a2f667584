"""The port that tells how all proxies are: its statuses, and who is let in."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from harness.up.healthport import HealthPort
from proxy.httpserve import listen
from proxy.spans import JSON


async def asked(request: bytes, *, well: bool) -> bytes:
    async def look() -> tuple[bool, Mapping[str, JSON]]:
        return well, {"ok": well}

    listening = listen("127.0.0.1", 0)
    async with await HealthPort(look).start(listening):
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(request)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer


def ask(request: str, *, well: bool = True) -> tuple[int, str]:
    answer = asyncio.run(asked(request.replace("\n", "\r\n").encode(), well=well)).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


@pytest.mark.parametrize("well", [True, False])
def test_health_is_200_while_all_is_well_and_503_when_it_is_not(well: bool) -> None:
    status, body = ask("GET /health HTTP/1.1\nhost: localhost\n\n", well=well)
    assert (status, json.loads(body)) == (200 if well else 503, {"ok": well})
    assert ask("HEAD / HTTP/1.1\nhost: 127.0.0.1\n\n", well=well) == (200 if well else 503, "")


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET / HTTP/1.1\nhost: rebound.example\n\n", 421),
        ("GET / HTTP/1.1\nhost: localhost\norigin: https://evil.example\n\n", 403),
        ("POST / HTTP/1.1\nhost: localhost\ncontent-length: 0\n\n", 405),
        ("nonsense\n\n", 0),
    ],
)
def test_a_stranger_a_page_and_another_method_are_told_apart(request_text: str, status: int) -> None:
    assert ask(request_text)[0] == status
