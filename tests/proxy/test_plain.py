"""A plain call goes the quick way, and what is sent and recorded of it is what the careful way sends and records."""

import json
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given, settings

from proxy import vocabulary as v
from proxy.frames import read_strict
from proxy.fromserver import ServerSide
from proxy.plain import plain_answer, plain_arguments, plain_call
from proxy.plainway import PlainWay
from proxy.policy import Policy
from proxy.record import Identity, Stamp
from proxy.relay import OWED_ANSWERS, OWED_BYTES
from proxy.session import Session, Side
from proxy.settling import PAUSE
from proxy.spanread import spans_of
from tests.proxy.fuzz import CLIENT, POLICIES, SERVER, mutated
from tests.proxy.plaincalls import flat_calls, written
from tests.proxy.test_fail_open import lines
from tests.proxy.wires import ALLOWING, EVIL, Wire, call, policy_of

VERSION = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
PLAIN = [
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ok","arguments":{"a":1}}}',
    '{"method": "tools/call", "params": {"name": "ok", "arguments": {"a": [{}]}}, "jsonrpc": "2.0", "id": "%d"}',
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a/b%%","arguments":null,' + VERSION + "}}",
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{' + VERSION + ',"name":"é","arguments":{"x":"\\n"}}}',
]
ANSWERS = [
    '{"jsonrpc":"2.0","id":%d,"result":{"content":[],"isError":false}}',
    '{"jsonrpc": "2.0", "id": %d, "result": {"content": [], "isError": true}}',
    '{"result":{"a":{"result":1}},"jsonrpc":"2.0","id":"%d"}',
    '{"jsonrpc":"2.0","id":%d,"result":[1]}',
]
SCHEMA = policy_of(rules=[{"deny": "mcp/x/ok", "arguments": {"properties": {"a": {"const": 1}}}}])
OBSERVED = Policy("observe", "allow", EVIL.rules)


class Never(PlainWay):
    """The quick way, closed."""

    def call(self, raw: bytes, now: Stamp) -> None:
        """Take none."""

    def answer(self, raw: bytes, then: Stamp, seq: int) -> None:
        """Take none."""


class Talk:
    """A session whose ids and clock are counted, so that two of them can be compared.

    `passing`: what goes on as it is does so in the way of the pumps, where a call that waits is no Exchange yet.
    """

    def __init__(self, policy: Policy | None, *, quick: bool, passing: bool = False) -> None:
        self._passing = passing
        ids, self._clock = count(1), count(1000, 10)
        identity = Identity("x", "third_party", "stdio", "c1", run_id="r", trial=1)
        self.session = Session(identity, policy, "0.1.0", lambda digits: f"{next(ids):0{digits}x}", self._now())
        if not quick:
            connection = self.session.connection
            self.session.plain = Never(connection)
            self.session.server = ServerSide(connection, self.session.plain)
        self.records: list[str | bytes | bytearray] = [*self.session.opened().records]
        self.sent: list[tuple[bytes, bytes]] = []

    def _now(self) -> Stamp:
        mono = next(self._clock)
        return Stamp(mono, 1_700_000_000_000_000_000 + mono)

    def say(self, side: Side, raw: bytes, *, settled: bool) -> None:
        now = self._now()
        if self._passing and self._passes(side, raw, now):
            self.sent.append((raw, b""))
        else:
            step = self.session.line(side, raw, now)
            self.records += step.records
            self.sent.append((step.forward, step.back))
        if settled:
            self.records += self.session.settle()

    def _passes(self, side: Side, raw: bytes, now: Stamp) -> bool:
        if side == "server":
            return self.session.connection.passes(raw, now)
        decided = self.session.plain.decided(raw, *now)
        if decided is None:
            return False
        line, call = decided
        self.records.append(line)
        self.session.connection.from_client.calls[call[5]] = call
        return True

    def end(self) -> None:
        self.records += self.session.settle()
        self.records += self.session.closed("client_ended", self._now(), len(self.records), 0).records

    def spans(self) -> list[str]:
        """What the spans say beside their ids, in the order of the connection."""
        told = []
        for record in self.records:
            (span,) = spans_of(json.loads(record), "recorded")
            about = dict(span.attributes)
            place = about.get(v.MONO, 0), about[v.SPAN_KIND] == "request"
            told.append((place, json.dumps([span.name, span.kind, span.start_ns, span.end_ns, span.status, about])))
        return [text for _, text in sorted(told)]


def compare(policy: Policy | None, said: list[tuple[Side, bytes]], settled: Callable[[], bool]) -> None:
    careful = Talk(policy, quick=False)
    quick, passing = Talk(policy, quick=True), Talk(policy, quick=True, passing=True)
    for side, raw in said:
        always = settled()
        for talk in (quick, passing, careful):
            talk.say(side, raw, settled=always)
    for talk in (quick, passing, careful):
        talk.end()
    assert quick.sent == passing.sent == careful.sent
    assert quick.spans() == passing.spans() == careful.spans()


def conversation(dice: random.Random) -> list[tuple[Side, bytes]]:
    said: list[tuple[Side, bytes]] = []
    for _ in range(dice.randrange(1, 14)):
        side: Side = dice.choice(("client", "server"))
        known = dice.choice((PLAIN, CLIENT)) if side == "client" else dice.choice((ANSWERS, SERVER))
        text = dice.choice(known).replace("%d", str(dice.randrange(1, 4))).replace("%%", "%").encode()
        said.append((side, (mutated(text, dice) if dice.random() < 0.3 else text) + b"\n"))
    return said


def test_a_conversation_is_sent_and_recorded_as_by_the_careful_way_whenever_it_is_settled() -> None:
    dice = random.Random(5)
    policies = [None, ALLOWING, OBSERVED, SCHEMA, *POLICIES]
    for _ in range(250):
        compare(dice.choice(policies), conversation(dice), lambda: dice.random() < 0.5)


def test_settled_line_by_line_it_is_recorded_to_the_letter() -> None:
    dice = random.Random(6)
    for _ in range(100):
        quick, careful = Talk(EVIL, quick=True), Talk(EVIL, quick=False)
        for side, raw in conversation(dice):
            quick.say(side, raw, settled=True)
            careful.say(side, raw, settled=True)
        quick.end()
        careful.end()
        assert quick.records == careful.records


@settings(max_examples=200)
@given(flat_calls | lines() | written)
@example(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":{"a":1,"a":2}}}')
@example(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":{"__proto__":1}}}')
@example(
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":{"a":"x,y","b":1,"a":"\\""}}}'
)
@example(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":NaN}}')
@example(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":1},"jsonrpc":"2.0","id":2}')
def test_a_call_that_is_read_the_quick_way_has_that_one_reading(raw: bytes) -> None:
    quick = plain_call(raw + b"\n")
    if quick is None:
        return
    line = read_strict(raw + b"\n")
    (message,) = line.messages
    id_text, key, name, text, meta = quick
    assert (message.method, message.id_text, message.id_key) == ("tools/call", id_text, key)
    assert (message.given["name"], message.given_text("arguments")) == (name, text)
    assert (message.given["arguments"], message.given.get("_meta")) == (plain_arguments(text), meta)
    assert set(message.given) <= {"name", "arguments", "_meta"}


def nested(depth: int) -> tuple[str, str]:
    """A call and an answer to it that hold something so deep, of lists and of objects in turn."""
    lists, objects = "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth
    deep = lists if depth % 2 else objects
    return call("ok", arguments=deep), f'{{"jsonrpc":"2.0","id":1,"result":{{"a":{deep}}}}}'


@pytest.mark.untraced
@pytest.mark.parametrize("policy", [None, EVIL], ids=["none", "denying"])
def test_how_deep_is_read_does_not_depend_on_the_way(policy: Policy | None) -> None:
    # The limit of Python counts the frames that the call is made from, so the edge is somewhere in here.
    for depth in [*range(250, 260), *range(900, 1000)]:
        asked, answered = nested(depth)
        quick, careful = Talk(policy, quick=True), Talk(policy, quick=False)
        for talk in (quick, careful):
            talk.say("client", asked.encode() + b"\n", settled=True)
            talk.say("server", answered.encode() + b"\n", settled=True)
            talk.end()
        assert (depth, quick.sent) == (depth, careful.sent)
        assert (depth, quick.spans()) == (depth, careful.spans())


@pytest.mark.parametrize("text", [one.replace("%d", "7").replace("%%", "%") for one in PLAIN])
def test_what_clients_write_goes_the_quick_way(text: str) -> None:
    assert plain_call(text.encode() + b"\n") is not None


@pytest.mark.parametrize("text", [one.replace("%d", "7") for one in ANSWERS])
def test_what_servers_answer_goes_the_quick_way(text: str) -> None:
    assert plain_answer(text.encode() + b"\n") is not None


def _many(connection: Wire, number: int, size: int = 1) -> None:
    for place in range(1, number + 1):
        connection.relay.from_client(call("ok", id_text=str(place)).encode() + b"\n")
        answer = {"jsonrpc": "2.0", "id": place, "result": {"x": "y" * size}}
        connection.relay.from_server(json.dumps(answer).encode() + b"\n")
        connection.relay.settle_due()


def test_answers_wait_for_their_record_only_until_they_are_many(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    _many(connection, OWED_ANSWERS - 1)
    assert connection.spans("request") == []
    assert len(connection.spans("decision")) == OWED_ANSWERS - 1
    _many(connection, 1)
    assert len(connection.spans("request")) == OWED_ANSWERS
    assert not connection.relay.owes
    assert PAUSE == 0.001


def test_large_answers_do_not_wait_together(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    _many(connection, 6, OWED_BYTES // 6)
    assert len(connection.spans("request")) == 6


def test_a_record_that_fails_while_answers_wait_lets_no_call_through_from_then_on(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    _many(connection, 3)
    connection.break_record()
    connection.relay.settle()
    assert "No space left" in connection.relay.failure
    passage = connection.relay.from_client(call("ok", id_text="9").encode() + b"\n")
    assert passage.to_server == b""
    assert b"10004" in passage.to_client


def test_a_call_whose_own_decision_fails_is_refused_though_older_answers_still_wait(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    _many(connection, 3)
    connection.break_record()
    passage = connection.relay.from_client(call("ok", id_text="9").encode() + b"\n")
    assert passage.to_server == b""
    assert b"10004" in passage.to_client
    assert connection.relay.from_server(b'{"jsonrpc":"2.0","id":9,"result":{}}\n').to_client.endswith(b"\n")


def test_an_answer_that_came_before_its_question_stays_the_answer_to_none(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.relay.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"early":1}}\n')
    connection.relay.from_client(call("ok").encode() + b"\n")
    connection.server('{"jsonrpc":"2.0","id":1,"result":{"late":1}}')
    assert "early" in str(connection.only("unmatched").attributes[v.RESULT])
    assert "late" in str(connection.only("request").attributes[v.TOOL_RESULT])


def test_a_cancellation_that_comes_behind_an_answer_cancels_nothing(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    _many(connection, 1)
    connection.client('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    request = connection.only("request")
    assert (request.attributes[v.OUTCOME], request.attributes.get(v.CANCELLED)) == ("ok", None)
