"""Lines from the server: recorded and forwarded, edited or replaced where policy says so.

Refuses to know pipes, and which calls are allowed.
"""

from proxy import vocabulary as v
from proxy.askedinside import asked_inside
from proxy.connection import BLANK, Connection, Step
from proxy.exchange import SERVER_TO_CLIENT, Exchange, ended, requested
from proxy.faulting import spoil
from proxy.frames import Message, read_loose, read_strict
from proxy.ids import IdKey, id_text
from proxy.judging import Judgement, client_request, judge_client_request, judge_method, meta_text
from proxy.largemessage import LARGE, read_large
from proxy.listing import Span, answer_ids, hide_tools, may_name_tools, replaced, without
from proxy.longlines import first_seen, flowed, withheld
from proxy.members import FrameError
from proxy.plainway import PlainWay
from proxy.policy import NO_POLICY, Decision, canonical_name
from proxy.readings import answerable_ids, hidden_readings, ids_of, readings
from proxy.record import Stamp
from proxy.refusals import DENIED, NOT_READABLE, RECORDER_FAILED, error, tool_error
from proxy.refusing import as_lines, refusal, unlisted
from proxy.rounds import InputRequest
from proxy.scan import EnvelopeScanner
from proxy.spans import encode_attribute

_NONE: frozenset[IdKey] = frozenset()
_LOST = Decision(
    "deny", "recorder failed", "the record cannot be written, so nothing is asked of the client", True, "error"
)
_TOO_LONG = "it is longer than what policy looks at"


class ServerSide:
    """What the server sends on one connection."""

    def __init__(self, connection: Connection, plain: PlainWay) -> None:
        self.connection = connection
        self._plain = plain

    def line(self, raw: bytes, now: Stamp) -> Step:
        """A whole line; `forward` is what the client gets of it."""
        wire = self.connection
        if wire.passes(raw, now) or not raw.strip(BLANK):
            return Step([], raw)
        if not wire.passed:
            return self._line(raw, now)
        self.catch_up()
        late, wire.late = wire.late, []
        step = self._line(raw, now)
        return step._replace(records=late + step.records)

    def _line(self, raw: bytes, now: Stamp) -> Step:
        wire = self.connection
        judged = self._guarded(raw, now) or self._asking(raw, now) if wire.guards else None
        if judged is None and wire.spoilt:
            judged = spoil(wire, raw, now)
        if judged is not None:
            return judged
        if not wire.hides:
            return self._passed(raw, _NONE, now)
        shown, ours, records = self._shown(raw, now)
        step = self._passed(shown, ours, now)
        return step._replace(records=records + step.records)

    def catch_up(self, most: int = -1) -> None:
        """Look at the lines that went on unread, or the first of them.

        What is said of them, and of what follows, depends on their order.
        """
        wire = self.connection
        while wire.passed and most:
            raw, then, seq = wire.passed.popleft()
            wire.passed_bytes -= len(raw)
            most -= 1
            line = self._plain.answer(raw, then, seq)
            if line is not None:
                wire.late.append(line)
                continue
            wire.recorder.back_to(seq)
            wire.late += self._passed(raw, _NONE, then).records

    def _passed(self, raw: bytes, ours: frozenset[IdKey], now: Stamp) -> Step:
        """A line that goes on as it is; `ours` are the ids whose answers in it are the proxy's own."""
        wire = self.connection
        try:
            line = (read_large(raw) if len(raw) > LARGE else None) or read_loose(raw)
        except FrameError as problem:
            return Step(wire.unread(raw, str(problem), now, SERVER_TO_CLIENT), raw)
        records: list[str] = []
        opened: list[Exchange] = []
        gate = False
        for message in line.messages:
            if message.is_answer:
                key = message.id_key
                records += wire.answer(wire.from_client, message, now, SERVER_TO_CLIENT, ours=key in ours)
            else:
                one = judge_client_request(message, wire.policy)
                gate = gate or one.decision is not None
                exchange, lines = self._message(one, now)
                records += lines
                if exchange is not None:
                    opened.append(exchange)
        return Step(records, raw, gate=gate, opened=tuple(opened))

    def _message(self, one: Judgement, now: Stamp) -> tuple[Exchange | None, list[str]]:
        wire = self.connection
        message = one.message
        method = message.method
        if method is None:
            return None, [wire.malformed(message.source, "neither a request nor an answer", now, SERVER_TO_CLIENT)]
        place = wire.recorder.place(meta_text(message, "traceparent"))
        if message.id_key is None and one.decision is None:
            if method == "notifications/cancelled":
                self._cancelled(requested(message))
            asked = wire.inside_decisions(message, None, now) if method.startswith("notifications/tasks") else []
            return None, [*asked, wire.notification(message, method, now, SERVER_TO_CLIENT, place)]
        seq = wire.recorder.next_seq()
        exchange = wire.exchange(one, place, seq, now, SERVER_TO_CLIENT)
        if exchange is not None:
            wire.from_server.add(exchange)
        if one.decision is None:
            return exchange, []
        return exchange, [wire.decision(one, place, seq, now, SERVER_TO_CLIENT, None, alone=exchange is None)]

    def _cancelled(self, key: IdKey | None) -> None:
        """The server gives up on a request of its own, or ends a subscription of the client's (MCP 2026-07-28)."""
        wire = self.connection
        if not wire.from_server.cancel(key):
            listening = wire.from_client.first(key)
            if listening is not None and listening.method == "subscriptions/listen":
                wire.from_client.cancel(key)

    def _may_list(self, asked: Exchange | None) -> bool:
        """Whether an answer to this may bring tools; None is what a client may have asked elsewhere, or before."""
        return asked is None or asked.method == "tools/list"

    def _shown(self, raw: bytes, now: Stamp) -> tuple[bytes, frozenset[IdKey], list[str]]:
        """The line without hidden tools, an error where its tools have no one reading.

        Beside it the ids that the proxy answers in the server's place, and the lines about what the server said there.
        """
        wire = self.connection

        def hidden(name: str) -> bool:
            tool = canonical_name(wire.server, "tool", name)
            return wire.policy is not None and wire.policy.hides_tool(tool, wire.trust)

        try:
            line = read_strict(raw)
        except FrameError as problem:
            asks = [(key, wire.from_client.first(key)) for key in answer_ids(raw)]
            for key, asked in sorted(asks, key=lambda one: one[1] is None):
                if self._may_list(asked) and (asked is not None or may_name_tools(raw)):
                    record = wire.malformed(raw.decode("utf-8", "surrogateescape"), str(problem), now, SERVER_TO_CLIENT)
                    said = unlisted(id_text(key) if asked is None else asked.id_text, problem)
                    shown = f"{said}\n".encode("utf-8", "surrogateescape")
                    return shown, frozenset({key if asked is None else asked.key}), [record]
            return raw, frozenset(), []
        edits: list[tuple[Span, str]] = []
        ours: set[IdKey] = set()
        records: list[str] = []
        for message in line.messages:
            asked = wire.from_client.first(message.id_key)
            if not self._may_list(asked):
                continue
            try:
                edits += hide_tools(message, hidden)
            except (ValueError, RecursionError) as problem:
                given = message.id_text or "null"
                said = unlisted(given if asked is None else asked.id_text, problem)
                edits.append((Span(message.start, message.end), said))
                if asked is not None:
                    ours.add(asked.key)
                records.append(wire.malformed(message.source, str(problem), now, SERVER_TO_CLIENT))
        if not edits:
            return raw, frozenset(), records
        return replaced(raw.decode(), edits).encode("utf-8", "surrogateescape"), frozenset(ours), records

    def _guarded(self, raw: bytes, now: Stamp) -> Step | None:
        """Refuse what is, or may be read as, a client request that is denied; None when the line may go its way."""
        wire = self.connection
        try:
            line = read_strict(raw)
            if any(self._denies(reading.method) for reading in hidden_readings(raw)):
                raise FrameError("a lone carriage return may end a line inside it, which gives it a second reading")
        except FrameError as problem:
            denied = tuple(one for one in readings(raw) if self._denies(one.method))
            if not denied:
                return None
            decision = Decision("deny", "one reading", str(problem), True)
            record = wire.unread_decision(raw, str(problem), denied, decision, now, SERVER_TO_CLIENT)
            said = f"Wiretrap refused this request: {problem}"
            replies = [error(text, NOT_READABLE, said) for text in answerable_ids(raw)[0]]
            return Step([record], back=as_lines(replies))
        gone = [self._denies(message.method) for message in line.messages]
        if not any(gone):
            return None
        records: list[str] = []
        replies = []
        for message in (message for message, cut in zip(line.messages, gone, strict=True) if cut):
            lines, reply = refusal(wire, self._refused(message), now, SERVER_TO_CLIENT)
            records += lines
            if reply is not None:
                replies.append(reply)
        if all(gone):
            return Step(records, back=as_lines(replies))
        # In an array the other messages go on: most of them are answers that the client waits for.
        spans = [Span(message.start, message.end) for message in line.messages]
        step = self.line(without(raw.decode(), spans, gone).encode(), now)
        return step._replace(records=records + step.records, back=as_lines(replies) + step.back)

    def _asking(self, raw: bytes, now: Stamp) -> Step | None:
        """Refuse the calls whose answers ask inside them for what is denied; None when none of them does.

        The whole result goes: without its answer the call could not go on anyway (design section 4). So does a
        notification that asks.
        """
        wire = self.connection
        denied = [method for method in asked_inside(raw) if self._denies(method)]
        if not denied:
            return None
        text = raw.decode("utf-8", "surrogateescape")
        request = InputRequest(client_request(denied[0]) or denied[0], text)
        decision = _LOST if wire.failed else judge_method(denied[0], wire.policy)
        code = RECORDER_FAILED if wire.failed else DENIED
        records: list[str] = []
        forward: list[str] = []
        for key in answer_ids(raw, errors=True):
            exchange = wire.from_client.take(key)
            if exchange is None:
                continue
            said = f"Wiretrap refused what this answer asks of the client, {request.method}: {decision.reason}"
            records.append(wire.inside_decision(exchange, decision, request, now))
            is_tool, modern = exchange.method == "tools/call", (exchange.version or wire.version) >= "2026"
            forward.append(tool_error(exchange.id_text, code, said, decision.rule, modern=modern) if is_tool
                           else error(exchange.id_text, code, said, decision.rule))  # fmt: skip
            more = [encode_attribute(v.ERROR_TYPE, str(code))]
            outcome = "tool_error" if is_tool else "protocol_error"
            records.append(
                ended(wire.recorder, exchange, now, outcome, more, version=wire.version, failure=said, ours=True)
            )
        return Step(records or [wire.inside_decision(None, decision, request, now)], as_lines(forward))

    def _refused(self, message: Message) -> Judgement:
        one = judge_client_request(message, self.connection.policy)
        if not self.connection.failed:
            return one
        return one._replace(decision=_LOST, code=RECORDER_FAILED)

    def _denies(self, method: str | None) -> bool:
        meant = None if method is None else client_request(method)
        if meant is None:
            return False
        policy = self.connection.policy
        return self.connection.failed or (
            policy is not None and policy.in_force and policy.judge_client_request(meant).verdict == "deny"
        )

    def long_end(self, head: bytes, scanner: EnvelopeScanner, now: Stamp, *, flows: bool) -> Step:
        """The end of a line past the cap; `head` is what was kept of it, and `scanner` has seen all of it.

        One that flowed is only recorded. One that was held, since it might have had to be judged, is replaced: the
        requests that it answers get an error, and so do its own.
        """
        wire = self.connection
        text = head.decode("utf-8", "surrogateescape")
        if flows:
            records: list[str] = []
            begun = (wire.recorder.place(None), wire.recorder.next_seq(), now)
            seen = first_seen(wire, scanner, SERVER_TO_CLIENT)
            if seen is not None and seen.decision is not None:
                why = "it is longer than what is looked at"
                records.append(wire.cut_decision(head, why, seen, NO_POLICY, begun, SERVER_TO_CLIENT))
            owed = len(wire.owed)
            lines, opened = flowed(wire, head, scanner, begun, now, SERVER_TO_CLIENT)
            records += lines
            if not records and not opened and len(wire.owed) == owed:
                records.append(
                    wire.malformed(text, "it is too long to be looked at", now, SERVER_TO_CLIENT, truncated=True)
                )
            return Step(records, opened=tuple(opened))
        records = [wire.malformed(text, _TOO_LONG, now, SERVER_TO_CLIENT, truncated=True)]
        forward: list[str] = []
        asking = set(ids_of(scanner))
        said = f"Wiretrap could not pass this answer on: {_TOO_LONG}"
        for envelope in scanner.envelopes:
            line = None if envelope.id_text in asking else withheld(wire, envelope, now, SERVER_TO_CLIENT, said)
            if line is not None and envelope.id_text is not None:
                records.append(line)
                forward.append(error(envelope.id_text, NOT_READABLE, said))
        said = f"Wiretrap refused this request: {_TOO_LONG}"
        back = [error(one, NOT_READABLE, said) for one in ids_of(scanner)]
        return Step(records, as_lines(forward), as_lines(back))
