"""The state of one connection, and how what happens on it becomes span lines.

Refuses to know which lines are refused: the two sides decide that, each in its own module.
"""

from collections import deque
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple

from proxy import vocabulary as v
from proxy.exchange import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Asked, Exchange, Owed, ended, negotiated
from proxy.exchanges import Exchanges
from proxy.faults import FaultPlan
from proxy.frames import Message
from proxy.held import HeldCall
from proxy.ids import IdKey
from proxy.judging import (
    JUDGED,
    VERSION_KEY,
    Judgement,
    Ruling,
    client_request,
    denies_requests,
    is_judged,
    judge_method,
    meta_text,
)
from proxy.largemessage import LargeMessage
from proxy.policy import NO_POLICY, Decision, Policy
from proxy.readings import Reading, asks_nothing, readings
from proxy.record import Due, Place, Recorder, Stamp, payload
from proxy.rounds import InputRequest, Rounds, input_requests, is_interim, next_leg
from proxy.spans import INTERNAL, encode_attribute, number_template, template

BLANK = b" \t\r\n"
DECISION = f"{template(v.SPAN_KIND, v.DIRECTION)},{number_template(v.SEQ, v.MONO)}"


class Step(NamedTuple):
    """What a line leads to: span lines to write first, then bytes for the other side, and bytes back to the sender.

    `gate`: when `records` cannot be written, nothing of this step may be forwarded. `opened` are the exchanges that a
    forwarded line opened, `held` the calls that wait for an approval from now on. `kept` is a line that a fault keeps
    back, `wait` how many seconds late `forward` is to be.
    """

    records: list[str]
    forward: bytes = b""
    back: bytes = b""
    gate: bool = False
    opened: tuple[Exchange, ...] = ()
    held: tuple[HeldCall, ...] = ()
    kept: bytes = b""
    wait: float = 0.0


class Connection:
    """Who asked what, which era it is, and whether the record still works."""

    def __init__(self, recorder: Recorder, policy: Policy | None, start: Stamp) -> None:
        self.recorder = recorder
        self.start = start
        self.version = ""
        self.failed = self.splice = False
        self.faults: FaultPlan | None = None
        self.spoilt: set[IdKey] = set()
        self.from_client = Exchanges()
        self.from_server = Exchanges()
        self.rounds = Rounds()
        self.owed: list[Due] = []
        self.passed: deque[tuple[bytes, Stamp, int]] = deque()
        """Lines of the server that went on unread, when they came, and their place in the order."""
        self.passed_bytes = 0
        self.late: list[str] = []
        self.holds = False
        """Whether calls that have to be approved may wait here; else they are refused at once."""
        self.held: dict[str, HeldCall] = {}
        self.freed: list[HeldCall] = []
        """Calls that wait no longer though nobody answered them: whoever asks for approvals is to be told."""
        self.server, self.trust = recorder.identity.server_id, recorder.identity.trust
        self.adopt(policy)

    def adopt(self, policy: Policy | None) -> None:
        """Judge by this policy from the next line on."""
        self.policy = policy
        self.hides = policy is not None and policy.hides
        self.denies_requests = denies_requests(policy)

    @property
    def strict(self) -> bool:
        """Whether a line that cannot be judged is refused: a policy is in force, or the record has failed."""
        return self.failed or (self.policy is not None and self.policy.in_force)

    @property
    def guards(self) -> bool:
        """Whether client requests from the server are judged: some are denied, or the record has failed."""
        return self.failed or self.denies_requests

    def passes(self, raw: bytes, now: Stamp) -> bool:
        """Whether a whole line of the server goes on as it is, to be looked at later; else nothing was done."""
        blank = raw[:1] != b"{" and not raw.strip(BLANK)
        if blank or self.failed or self.denies_requests or self.hides or self.spoilt or not asks_nothing(raw):
            return False
        self.passed.append((raw, now, self.recorder.next_seq()))
        self.passed_bytes += len(raw)
        return True

    def exchange(
        self, one: Judgement, place: Place, seq: int, now: Stamp, direction: str, *, cut: bool = False
    ) -> Exchange | None:
        """The exchange that a request begins, or None where its id is none that an answer can be told by.

        `cut`: the message is not whole, and has no more than its id, method and target.
        """
        message = one.message
        key, method, id_text = message.id_key, message.method, message.id_text
        if key is None or method is None or id_text is None:
            return None
        version = (meta_text(message, VERSION_KEY) or "") if "_meta" in message.given else ""
        if method == "tools/call":
            text = message.given_text("arguments")
        else:
            text = None if cut else message.field_text("params")
        asked = Asked(seq, direction, one.canonical, one.target, text, cut)
        found = Exchange(place, method, now, id_text, key, asked, version)
        if version and direction == CLIENT_TO_SERVER and method in JUDGED:
            found.call = (method, one.target, message.given_text("arguments") or "")
        return found

    def decision(
        self,
        one: Judgement,
        place: Place,
        seq: int,
        now: Stamp,
        direction: str,
        odd: str | None,
        *,
        alone: bool = False,
    ) -> str:
        """The line of a decision: a zero-length child of the request's span, with the whole request.

        `alone`: that span is never written, so the decision stands in its place, and no backend misses a parent.
        """
        message = one.message
        ruling = Ruling(one.decision or NO_POLICY, message.method, one.canonical, message.id_text)
        own = place if alone else self.child(place)
        return self._decision(ruling, message.source, own, seq, now, direction, odd)

    def child(self, place: Place) -> Place:
        """A place of its own under another one."""
        return Place(place.trace_id, self.recorder.new_id(16), place.span_id)

    def unread_decision(
        self, raw: bytes, why: str, seen: tuple[Reading, ...], decision: Decision, now: Stamp, direction: str
    ) -> str:
        """The line of a decision on a line that has no one reading; the whole line stands in it."""
        methods = dict.fromkeys(reading.method for reading in seen)
        judged = [method for method in methods if is_judged(method)] or list(methods)
        text = raw.decode("utf-8", "surrogateescape")
        place = self.recorder.place(None)
        ruling = Ruling(decision, judged[0] if judged else None)
        return self._decision(ruling, text, place, self.recorder.next_seq(), now, direction, why)

    def cut_decision(
        self,
        head: bytes,
        why: str,
        seen: Judgement | None,
        decision: Decision,
        begun: tuple[Place, int, Stamp],
        direction: str,
        *,
        alone: bool = False,
    ) -> str:
        """The line of a decision on a line past the cap: its first bytes, and what was `seen` of its message.

        `begun` is the place, the seq and the moment of its request.
        """
        place, seq, now = begun
        ruling = Ruling(decision, None)
        if seen is not None:
            ruling = Ruling(decision, seen.message.method, seen.canonical, seen.message.id_text)
        text = head.decode("utf-8", "surrogateescape")
        own = place if alone else self.child(place)
        return self._decision(ruling, text, own, seq, now, direction, why, truncated=True)

    def _decision(
        self,
        ruling: Ruling,
        text: str,
        place: Place,
        seq: int,
        now: Stamp,
        direction: str,
        odd: str | None,
        *,
        truncated: bool = False,
    ) -> str:
        encoded = [DECISION % ('"decision"', quote(direction), seq, now.mono), *ruling.attributes()]
        if ruling.method == "tools/call":
            self.recorder.calls += 1
        if odd is not None:
            encoded.append(encode_attribute(v.MALFORMED, odd))
        encoded += payload(v.REQUEST, "request", text, truncated=truncated)
        name = f"decision {ruling.method}" if ruling.method else "decision"
        return self.recorder.line(place, name, INTERNAL, (now.wall, now.wall), encoded)

    def notification(self, message: Message, method: str, now: Stamp, direction: str, place: Place) -> str:
        """The line of a message that asks for no answer."""
        attributes = self.recorder.fact("notification", now, direction, {v.METHOD: method})
        params = message.field_text("params")
        if params is not None:
            attributes += payload(v.PARAMS, "params", params)
        return self.recorder.line(place, method, INTERNAL, (now.wall, now.wall), attributes)

    def malformed(self, text: str, why: str, now: Stamp, direction: str, *, truncated: bool = False) -> str:
        """The line of something on the wire that is no message."""
        attributes = self.recorder.fact("malformed", now, direction, {v.MALFORMED: why})
        attributes += payload(v.REQUEST, "request", text, truncated=truncated)
        return self.recorder.line(self.recorder.place(None), "malformed", INTERNAL, (now.wall, now.wall), attributes)

    def answer(
        self, asked: Exchanges, message: Message, now: Stamp, direction: str, *, ours: bool = False
    ) -> list[str]:
        """End the exchange that an answer belongs to, whose line is owed then.

        What is given back are lines to write at once: of an answer that no request asked for, and of decisions on what
        it asks inside.
        """
        exchange = asked.take(message.id_key, now)
        if exchange is None:
            attributes = self.recorder.fact("unmatched", now, direction, {})
            if message.id_text is not None:
                attributes.append(encode_attribute(v.ID_TEXT, message.id_text))
            attributes += payload(v.RESULT, "result", message.source)
            place = self.recorder.place(None)
            return [self.recorder.line(place, "unmatched answer", INTERNAL, (now.wall, now.wall), attributes)]
        version = negotiated(exchange, message)
        if exchange.method == "initialize" or not self.version:
            self.version = version or self.version
        if exchange.method == "tools/list" and not ours and self.recorder.offered is not None:
            self.recorder.offered.take(message.source)
        inside: list[str] = []
        if exchange.call is not None and not ours and is_interim(message):
            exchange.interim = True
            self.rounds.wait(message, exchange.call, next_leg(exchange.leg, exchange.place))
        if not ours and (exchange.interim or exchange.method.startswith("tasks/") or "error" in message.fields):
            inside = self.inside_decisions(message, exchange, now)
        seq = self.recorder.next_seq()
        self.owed.append(Owed(exchange, message, now, seq, version or self.version, ours))
        return inside

    def settle(self) -> "list[str | bytes | bytearray]":
        """The lines that are owed for what has gone on."""
        late, self.late = self.late, []
        owed, self.owed = self.owed, []
        recorder = self.recorder
        lines = [_large(one, recorder) if _is_large(one) else one.line(recorder) for one in owed]
        return [*late, *lines]

    def inside_decisions(self, message: Message, exchange: Exchange | None, now: Stamp) -> list[str]:
        """The lines of the decisions on all that an answer or a notification asks of the client."""
        asked = [one for one in input_requests(message) if client_request(one.method) is not None]
        return [self.inside_decision(exchange, judge_method(one.method, self.policy), one, now) for one in asked]

    def inside_decision(self, exchange: Exchange | None, decision: Decision, request: InputRequest, now: Stamp) -> str:
        """The line of a decision on what is asked of the client inside an answer, a child of what it answers if any."""
        ruling = Ruling(decision, request.method)
        place = self.recorder.place(None) if exchange is None else self.child(exchange.place)
        seq = self.recorder.next_seq()
        return self._decision(ruling, request.text, place, seq, now, SERVER_TO_CLIENT, None)

    def unread(self, raw: bytes, why: str, now: Stamp, direction: str) -> list[str]:
        """The lines of what no strict reader takes and yet goes on: a decision where some reader sees a call."""
        seen = readings(raw) if direction == CLIENT_TO_SERVER else ()
        if direction == SERVER_TO_CLIENT or (self.policy is None and not any(is_judged(one.method) for one in seen)):
            return [self.malformed(raw.decode("utf-8", "surrogateescape"), why, now, direction)]
        decision = NO_POLICY if self.policy is None else Decision("deny", "one reading", why, False)
        return [self.unread_decision(raw, why, seen, decision, now, direction)]

    def drain(self, now: Stamp) -> list[str]:
        """The lines of every exchange that is still open at the end."""
        rest = sorted(self.from_client.drain() + self.from_server.drain(), key=lambda exchange: exchange.start)
        return [
            ended(self.recorder, e, now, "cancelled" if e.cancelled else "unanswered", [], version=self.version)
            for e in rest
        ]


def _is_large(due: Due) -> bool:
    return isinstance(due, Owed) and isinstance(due.message, LargeMessage)


def _large(due: Due, recorder: Recorder) -> "str | bytes | bytearray":
    from proxy.largeline import large_line  # noqa: PLC0415  (few connections need it)

    return large_line(due, recorder, recorder.new_id(32))
