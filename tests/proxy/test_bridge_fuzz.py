"""Mutated messages through the rooms of a bridge: no exception, whole lines only, and nobody else's answer."""

import asyncio
import json
import random

from proxy.bridgechecks import Fault, read_post
from proxy.bridgeline import BridgeLine
from proxy.bridgesession import SessionRoom
from proxy.bridgeshared import SharedRoom
from proxy.child import Child
from proxy.frames import read_loose
from proxy.hosted import Hosted
from proxy.httpwords import Headers
from proxy.mcpheaders import Mirrors
from tests.proxy.bridgewires import modern, told
from tests.proxy.fuzz import CLIENT, SERVER, mutated
from tests.proxy.httpwires import JSON_TYPE

SESSION = (b"mcp-session-id", b"s")


class Recording(Hosted):
    """A server whose lines the test has."""

    def __init__(self) -> None:
        super().__init__(Child(0, -1, -1), lambda _: None, lambda _: None, lambda: None)
        self.lines: list[bytes] = []

    def put(self, line: bytes) -> None:
        self.lines.append(line)


def body_of(dice: random.Random) -> tuple[bytes, Headers]:
    """A body, often broken, and headers that may fit to it."""
    if dice.random() < 0.5:
        name = dice.choice(("ok", "fine"))
        method = dice.choice(("tools/call", "tools/list", "subscriptions/listen"))
        meta = dice.choice(("", '"progressToken":"t",', '"progressToken":1,', '"x":NaN,'))
        text = modern(
            method, dice.choice(("1", '"1"', "2.0")), meta, **({"name": name} if method == "tools/call" else {})
        )
        headers = told(method, name if method == "tools/call" else "")
    else:
        text = dice.choice(CLIENT)
        text = text % dice.randrange(4) if "%d" in text else text
        headers = [JSON_TYPE, SESSION]
    return (text.encode() if dice.random() < 0.5 else mutated(text.encode(), dice)), headers


def line_of(dice: random.Random, last: bytes) -> bytes:
    """What a server might say next, often an answer to the last line that it got."""
    text = dice.choice(SERVER)
    line = (text % dice.randrange(6) if "%d" in text else text).encode()
    if last and dice.random() < 0.6:
        number = json.loads(last).get("id", 0)
        key = "io.modelcontextprotocol/subscriptionId"
        line = dice.choice(
            (
                json.dumps({"jsonrpc": "2.0", "id": number, "result": {"_meta": {key: number}}}),
                json.dumps({"method": "notifications/progress", "params": {"progressToken": number}}),
                json.dumps({"method": "notifications/x", "params": {"_meta": {key: number}}}),
            )
        ).encode()
    return line if dice.random() < 0.6 else mutated(line, dice)


async def one_run(seed: int) -> int:
    """Fifty messages; how many reached a server."""
    dice = random.Random(seed)
    old, new = SessionRoom(), SharedRoom(Mirrors())
    mine, shared = Recording(), Recording()
    old.hosted, new.hosted = mine, shared
    old.version = "2025-03-26"
    lines: list[tuple[BridgeLine, str]] = []
    for _ in range(50):
        if dice.random() < 0.5:
            body, headers = body_of(dice)
            post = read_post(headers, body, Mirrors())
            if isinstance(post, Fault):
                assert json.loads(post.body, parse_int=float)["error"]["data"]["wiretrap"]
                continue
            line = BridgeLine(lambda *_: asyncio.sleep(0))
            await (new if post.modern else old).take(line, post)
            if post.modern and post.line.messages[0].id_text is not None:
                lines.append((line, post.line.messages[0].id_text))
            if dice.random() < 0.1:
                line.abort()
        else:
            old.line(line_of(dice, b""))
            asked = [line for line in shared.lines if b"clientCapabilities" in line and b'"id"' in line]
            new.line(line_of(dice, asked[-1] if asked else b""))
    asked = [line for line in shared.lines if b"clientCapabilities" in line and b'"id"' in line]
    numbers = [json.loads(line)["id"] for line in asked]
    assert len(numbers) == len(set(numbers))
    for line_of_ours in [*mine.lines, *shared.lines]:
        assert line_of_ours.count(b"\n") == 1
        assert line_of_ours.endswith(b"\n")
    old.end("over")
    new.end("over")
    for line, id_text in lines:
        if line.over and not line.streams and line._chunks:
            (answer,) = read_loose(b"".join(line._chunks)).messages
            assert answer.id_text == id_text
    return len(mine.lines) + len(shared.lines)


def test_mutated_messages_raise_nothing_and_keep_lines_and_ids_apart() -> None:
    assert sum(asyncio.run(one_run(seed)) for seed in range(100)) > 1000
