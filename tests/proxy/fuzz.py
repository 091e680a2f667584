"""A fuzzer over the wire core: both eras, both directions, policy in force. `make fuzz`, or with SECONDS and SEED.

It mutates messages of the protocol, cuts the streams anywhere, and looks at three things: no fault of the proxy's own,
no denied call in what was forwarded as any model server reads it, and no line lost, doubled or changed.
"""

import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from proxy import vocabulary as v
from proxy.policy import Policy
from tests.proxy.readers import calls_seen
from tests.proxy.wires import EVIL, Wire, policy_of

MODERN = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
CLIENT = [
    '{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ok","arguments":{"a":1,"b":["x",{"c":null}]}}}',
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"evil","arguments":{"a":1}}}',
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"evil",' + MODERN + "}}",
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ok","requestState":"s","inputResponses":{},'
    + MODERN
    + "}}",
    '[{"jsonrpc":"2.0","id":%d,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"evil"}}]',
    '{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{}}',
    '{"jsonrpc":"2.0","id":"s","result":{"role":"assistant"}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}',
    '{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"file:///evil"}}',
    '{"jsonrpc":"2.0","id":%d,"method":"ping","x":{"method":"tools/call","params":{"name":"evil"}}}',
]
SERVER = [
    '{"jsonrpc":"2.0","id":%d,"result":{"content":[],"isError":false}}',
    '{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"ok"},{"name":"evil"}],"cacheScope":"public"}}',
    '{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}',
    '{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no"}}',
    '{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[]}}',
    '{"jsonrpc":"2.0","id":%d,"method":"ping"}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
    '{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","requestState":"s","inputRequests":'
    '{"k":{"method":"elicitation/create","params":{}}}}}',
    "a banner line",
]
SEEDS = [
    *(b"\r", b"\0", b"\xef\xbb\xbf", b"\\u0000", b"\\u00a0", b" ", b"\t", b"\xff", b"\\", b'"', b"{", b"}", b"[", b"]"),
    *(b"NaN", b"1e400", b"-0", b"null", b"true", b'"method":"ping",', b'"name":"ok",', b'"Method":"tools/call",'),
    *(b"\xc2\xa0", b"\xe2\x80\xa8", b"\x1e", b",", b'"id":7,', b'"params":{"name":"evil"},', b"tools/call", b"evil"),
    *(b"\\u0065vil", b'"__proto__":'),
]
POLICIES = [
    EVIL,
    policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}]),
    policy_of(
        default="deny", rules=[{"allow": "mcp/x/ok"}], client_requests={"sampling": "deny", "elicitation": "deny"}
    ),
    policy_of(
        rules=[{"deny": "mcp/x/evil", "as": "error"}, {"deny": "mcp/x/resource:*"}], client_requests={"roots": "deny"}
    ),
]


@dataclass(slots=True)
class Tally:
    """What was tried."""

    connections: int = 0
    lines: int = 0
    refused: int = 0
    forwarded: int = 0
    failures: list[str] = field(default_factory=list)


def mutated(line: bytes, dice: random.Random) -> bytes:
    """A line with a few changes, and without a line feed inside."""
    data = bytearray(line)
    for _ in range(dice.choice((0, 0, 1, 1, 2, 3, 6))):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(6):
            case 0:
                data[at:at] = dice.choice(SEEDS)
            case 1:
                del data[at : at + dice.randrange(1, 4)]
            case 2 if at < len(data):
                data[at] = dice.randrange(256)
            case 3:
                end = min(at + dice.randrange(1, 40), len(data))
                data[at:at] = data[at:end]
            case 4 if at < len(data):
                data[at : at + 1] = bytes(data[at : at + 1]).swapcase()
            case _:
                data[at:at] = b" " * dice.choice((1, 1, 300))
    return bytes(data).replace(b"\n", b"")


def drawn(messages: list[str], dice: random.Random) -> bytes:
    """A mutated line of some messages, with one of few ids."""
    return mutated(dice.choice(messages).replace("%d", str(dice.randrange(4))).encode(), dice) + b"\n"


def cut(stream: bytes, dice: random.Random) -> list[bytes]:
    """The stream in chunks of any size."""
    pieces = []
    while stream:
        size = dice.choice((1, 3, 17, 64, 1000))
        pieces.append(stream[:size])
        stream = stream[size:]
    return pieces


def unchanged(lines: list[bytes], out: bytes) -> int | None:
    """How many of the lines stand in `out`, whole and in order, and nothing else; None where something else does."""
    at = passed = 0
    for line in lines:
        if out.startswith(line, at):
            at += len(line)
            passed += 1
    return passed if at == len(out) else None


def connection(folder: Path, policy: Policy, dice: random.Random, tally: Tally) -> None:
    """One connection with some lines from either side."""
    wire = Wire(folder, policy)
    client = [
        mutated((dice.choice(CLIENT).replace("%d", str(dice.randrange(4)))).encode(), dice) + b"\n" for _ in range(6)
    ]
    server = [
        mutated((dice.choice(SERVER).replace("%d", str(dice.randrange(4)))).encode(), dice) + b"\n" for _ in range(6)
    ]
    flow = bytearray()
    turns = [("client", piece) for piece in cut(b"".join(client), dice)]
    for piece in cut(b"".join(server), dice):
        turns.insert(dice.randrange(len(turns) + 1), ("", piece))
    order = iter(cut(b"".join(server), random.Random(0)))
    for side, piece in turns:
        if side == "client":
            wire.client(piece)
        else:
            flow += wire.server(next(order, b"")).to_client
    for piece in order:
        flow += wire.server(piece).to_client
    wire.end()
    tally.connections += 1
    tally.lines += len(client) + len(server)
    passed = unchanged(client, bytes(wire.to_server)) if not policy.client_requests else -1
    if wire.relay.failure:
        tally.failures.append(f"a fault: {wire.relay.failure}: {client} {server}")
    if ("tools/call", "evil") in calls_seen(bytes(wire.to_server)):
        tally.failures.append(f"a denied call went through: {client}")
    if passed is None:
        tally.failures.append(f"a line of the client's was changed: {client} {bytes(wire.to_server)!r}")
    if not policy.hides and not policy.client_requests and bytes(flow) != b"".join(server):
        tally.failures.append(f"a line of the server's was changed: {server} {bytes(flow)!r}")
    denied = sum(span.attributes.get(v.DECISION) == "deny" for span in wire.spans("decision"))
    if passed is not None and passed >= 0:
        lost = sum(bool(line.strip()) for line in client) - passed
        tally.forwarded += passed
        tally.refused += lost
        if lost > denied:
            tally.failures.append(f"{lost} lines went nowhere, {denied} were refused: {client}")


def main() -> None:
    """Run for SECONDS (60) from SEED (1); exit 1 with the first failures where there are any."""
    seconds, seed = (float(sys.argv[1]) if len(sys.argv) > 1 else 60.0), (int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    dice = random.Random(seed)
    tally = Tally()
    end = monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while monotonic() < end and not tally.failures:
            place = Path(folder) / "spans"
            place.mkdir(mode=0o700, exist_ok=True)
            connection(place, dice.choice(POLICIES), dice, tally)
            for file in place.iterdir():
                file.unlink()
    sys.stdout.write(
        f"seed {seed}: {tally.connections} connections, {tally.lines} lines, of the client's where that can be counted "
        f"{tally.forwarded} forwarded and {tally.refused} refused; {len(tally.failures)} failures\n"
    )
    for failure in tally.failures[:3]:
        sys.stdout.write(f"{failure}\n")
    sys.exit(bool(tally.failures))


if __name__ == "__main__":
    main()
