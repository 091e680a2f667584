"""Lines that pass as they are, alone or many in one read, do what the same lines do that are looked at one by one."""

import random
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from proxy import vocabulary as v
from proxy.fromserver import ServerSide
from proxy.policy import Policy
from proxy.session import Side
from tests.proxy.deniedlines import code_of
from tests.proxy.fuzz import POLICIES
from tests.proxy.test_plain import OBSERVED, SCHEMA, Never, conversation
from tests.proxy.wires import ALLOWING, EVIL, Wire, call

TIMES = {v.MONO, v.RESULT_MONO}
ANSWER = '{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n'


def careful(folder: Path, policy: Policy | None) -> Wire:
    wire = Wire(folder, policy)
    session = wire.relay.session
    session.plain = Never(session.connection)
    session.server = ServerSide(session.connection, session.plain)
    return wire


def told(wire: Wire) -> list[str]:
    """What the spans say beside ids and times."""
    return sorted(
        repr((span.name, span.kind, span.status, [one for one in span.attributes.items() if one[0] not in TIMES]))
        for span in wire.spans()
    )


def grouped(said: list[tuple[Side, bytes]], dice: random.Random) -> list[tuple[Side, bytes]]:
    """The same bytes of each side in reads of any number of lines, cut anywhere now and then."""
    reads: list[tuple[Side, bytes]] = []
    for side, line in said:
        if reads and reads[-1][0] == side and dice.random() < 0.7:
            reads[-1] = side, reads[-1][1] + line
        else:
            reads.append((side, line))
    cut: list[tuple[Side, bytes]] = []
    for side, chunk in reads:
        places = sorted({0, len(chunk), *(dice.randrange(len(chunk)) for _ in range(dice.choice((0, 0, 1))))})
        cut += [(side, chunk[start:end]) for start, end in pairwise(places)]
    return cut


def test_lines_in_reads_of_any_size_are_sent_and_recorded_as_by_the_careful_way() -> None:
    dice = random.Random(7)
    for _ in range(120):
        policy = dice.choice([None, ALLOWING, OBSERVED, SCHEMA, *POLICIES])
        said = sorted(conversation(dice) + conversation(dice), key=lambda one: one[0] if dice.random() < 0.5 else "")
        reads = grouped(said, dice)
        with TemporaryDirectory() as folder:
            quick, slow = Wire(Path(folder), policy), careful(Path(folder), policy)
            for wire in (quick, slow):
                for side, chunk in reads:
                    (wire.client if side == "client" else wire.server)(chunk)
                wire.end()
            assert (quick.to_server, quick.to_client) == (slow.to_server, slow.to_client)
            assert told(quick) == told(slow)


def calls(count: int) -> bytes:
    return "".join(call("ok", id_text=str(one)) + "\n" for one in range(1, count + 1)).encode()


def test_many_calls_of_one_read_pass_and_what_follows_them_is_left(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    many = calls(150)
    behind = call("evil", id_text="151").encode() + b"\n" + calls(1)
    assert connection.relay.passes("client", many + behind) == len(many)
    assert len(connection.spans("decision")) == 150
    answers = "".join(ANSWER % one for one in range(1, 151)).encode()
    assert connection.relay.passes("server", answers + b'{"jsonr') == len(answers)
    connection.relay.settle()
    assert len(connection.spans("request")) == 150


@pytest.mark.parametrize("fails", ["record", "proxy"])
def test_of_many_calls_those_go_on_whose_decisions_are_on_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    connection = Wire(tmp_path, EVIL)
    session = connection.relay.session
    real, seen = session.plain.decided, 0

    def decided(raw: bytes, mono: int, wall: int) -> object:
        nonlocal seen
        seen += 1
        if seen == 100 and fails == "record":
            connection.break_record()
        if seen == 100 and fails == "proxy":
            raise RuntimeError("a bug")
        return real(raw, mono, wall)

    monkeypatch.setattr(session.plain, "decided", decided)
    connection.client(calls(150))
    assert connection.to_server == calls(64)
    assert [code_of(reply) for reply in connection.replies] == [10004] * 86
    assert session.connection.from_client.open.keys() == {("n", one) for one in range(1, 65)}
