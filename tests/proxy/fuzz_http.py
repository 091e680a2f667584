"""A fuzzer over the HTTP edge, on real sockets: both eras, policy in force. `make fuzz`, or with SECONDS and SEED.

It mutates messages, headers, framing and answers, and looks at four things: no fault of the proxy's own, no denied call
in what reached the server as any model server reads it, every message at the server once and as it was or refused, and
every answer at the client as the server gave it.
"""

import gzip
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from proxy.httpwords import Headers
from proxy.policy import Policy
from tests.proxy.fuzz import CLIENT, POLICIES, SERVER, mutated
from tests.proxy.httpupstream import Request, Upstream
from tests.proxy.httpwires import Client, Proxy
from tests.proxy.readers import calls_seen

REQUESTS = 300
"""Requests of one proxy; then its record is read."""
HEADERS: list[tuple[bytes, bytes]] = [
    *((b"mcp-name", name) for name in (b"ok", b"evil", b"=?base64?b2s=?=", b"\xff")),
    *((b"mcp-method", name) for name in (b"tools/call", b"tools/list", b"ping")),
    *((b"mcp-protocol-version", one) for one in (b"2026-07-28", b"2025-03-26", b"x")),
    *((b"mcp-session-id", one) for one in (b"a", b"b")),
    *((b"content-type", one) for one in (b"application/json", b"text/plain", b"application/x-www-form-urlencoded")),
    (b"content-type", b"application/json; charset=utf-16"),
    (b"mcp-param-a", b"1"),
    (b"accept-encoding", b"gzip"),
    (b"connection", b"mcp-name"),
]


@dataclass(slots=True)
class Tally:
    """What was tried."""

    requests: int = 0
    passed: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


class Answers:
    """The server: it answers anything, and remembers what."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.body = b""
        self.count = 0

    def __call__(self, request: Request) -> None:
        self.count += 1
        dice = self.dice
        messages = [
            mutated(dice.choice(SERVER).replace("%d", str(dice.randrange(4))).encode(), dice)
            for _ in range(dice.randrange(1, 4))
        ]
        match dice.randrange(4):
            case 0:
                self.body = b"".join(b"data: " + one.replace(b"\r", b"") + b"\n\n" for one in messages)
                request.stream()
                rest = self.body
                while rest:
                    size = dice.choice((1, 7, 100, 1000))
                    request.chunk(rest[:size])
                    rest = rest[size:]
                request.end()
            case 1:
                self.body = gzip.compress(messages[0])
                request.answer(self.body, headers="content-type: application/json\r\ncontent-encoding: gzip")
            case 2:
                self.body = messages[0]
                request.answer(self.body, dice.choice(("200 OK", "202 Accepted", "404 Not Found", "500 Oh")))
            case _:
                self.body = messages[0]
                request.answer(self.body)


def sent_by(client: Client, dice: random.Random) -> bytes:
    """Send a mutated request; its body."""
    body = mutated(dice.choice(CLIENT).replace("%d", str(dice.randrange(4))).encode(), dice)
    headers: Headers = [dice.choice(HEADERS) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    match dice.randrange(8):
        case 0:
            body = gzip.compress(body)
            headers.append((b"content-encoding", b"gzip"))
        case 1:
            body = body.decode("utf-8", "replace").encode(dice.choice(("utf-16", "utf-16-le", "utf-8-sig")))
    method = dice.choice(("POST", "POST", "POST", "PUT"))
    if dice.randrange(3):
        client.send(method, "/mcp", body, headers)
        return body
    client.send(method, "/mcp", None, [*headers, (b"transfer-encoding", b"chunked")])
    rest = body
    while rest:
        size = dice.choice((1, 5, 60))
        client.socket.sendall(b"%x\r\n%s\r\n" % (len(rest[:size]), rest[:size]))
        rest = rest[size:]
    client.socket.sendall(b"0\r\n\r\n")
    return body


def readable(body: bytes, request: Request) -> bytes:
    """A body as a server reads it that unpacks what it gets."""
    if request.values("content-encoding"):
        return gzip.decompress(body)
    return body


def connection(folder: Path, policy: Policy, dice: random.Random, tally: Tally) -> None:
    """One proxy with some requests."""
    answers = Answers(dice)
    upstream = Upstream(answers)
    proxy = Proxy(folder, upstream.port, policy)
    plain = not (policy.hides or policy.client_requests)
    try:
        with Client(proxy.port) as client:
            for _ in range(REQUESTS):
                before = len(upstream.requests)
                body = sent_by(client, dice)
                got = client.rest(client.head())
                tally.requests += 1
                there = [one for one in upstream.requests[before:] if one.method in {"POST", "PUT"}]
                own = [one for one in there if one.body == body]
                what = f"{body!r}: {got}"
                if any(("tools/call", "evil") in calls_seen(readable(one.body, one)) for one in there):
                    tally.failures.append(f"a denied call went through: {what}")
                if len(own) > 1 or (plain and len(there) != len(own)):
                    tally.failures.append(f"a message reached the server changed, or twice: {what}")
                if own:
                    tally.passed += 1
                    if plain and got.body != answers.body:
                        tally.failures.append(f"an answer was changed, {answers.body!r}: {what}")
                elif b"iretrap" in got.body:
                    tally.refused += 1
                elif body.strip():
                    tally.failures.append(f"a message went nowhere: {what}")
                if tally.failures:
                    return
                if client.socket.fileno() < 0 or got.values("connection") == ["close"]:
                    return
    finally:
        proxy.close()
        upstream.close()
        if proxy.app.asking.seats.failure:
            tally.failures.append(f"a fault: {proxy.app.asking.seats.failure}")
    proxy.spans()


def main() -> None:
    """Run for SECONDS (60) from SEED (1); exit 1 with the first failures where there are any."""
    seconds, seed = (float(sys.argv[1]) if len(sys.argv) > 1 else 60.0), (int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    dice = random.Random(seed)
    tally = Tally()
    end = monotonic() + seconds
    while monotonic() < end and not tally.failures:
        with tempfile.TemporaryDirectory() as folder:
            connection(Path(folder), dice.choice(POLICIES), dice, tally)
    sys.stdout.write(
        f"HTTP, seed {seed}: {tally.requests} requests, {tally.passed} passed and {tally.refused} refused; "
        f"{len(tally.failures)} failures\n"
    )
    for failure in tally.failures[:3]:
        sys.stdout.write(f"{failure}\n")
    sys.exit(bool(tally.failures))


if __name__ == "__main__":
    main()
