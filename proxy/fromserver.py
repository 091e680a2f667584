"""Lines from the server: recorded and forwarded, edited or replaced where policy says so.

Refuses to know pipes, and which calls are allowed.
"""

from collections.abc import Mapping

from proxy.connection import BLANK, Connection, Step
from proxy.exchange import SERVER_TO_CLIENT, Exchange
from proxy.frames import FrameError, Message, read_loose, read_strict
from proxy.judging import Judgement, judge_client_request, meta_text
from proxy.listing import Span, hide_tools, without
from proxy.policy import CLIENT_REQUESTS, Decision, canonical_name
from proxy.readings import answerable_ids, readings
from proxy.record import Stamp
from proxy.refusals import NOT_READABLE, RECORDER_FAILED, error
from proxy.scan import decoded, usable_id

_TOO_LONG = "it is longer than what policy looks at"


class ServerSide:
    """What the server sends on one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def line(self, raw: bytes, now: Stamp) -> Step:
        """A whole line; `forward` is what the client gets of it."""
        wire = self.connection
        if not raw.strip(BLANK):
            return Step([], raw)
        if wire.guards:
            judged = self._guarded(raw, now)
            if judged is not None:
                return judged
        try:
            line = read_loose(raw)
        except FrameError as problem:
            return Step(wire.unread(raw, str(problem), now, SERVER_TO_CLIENT), raw)
        records: list[str] = []
        opened: list[Exchange] = []
        forward = raw
        gate = False
        for message in line.messages:
            if message.is_answer:
                edited, ours, seen = self._edited(message, raw, batch=line.batch)
                forward = forward if edited is None else edited
                records += wire.answer(wire.from_client, seen, now, SERVER_TO_CLIENT, ours=ours)
            else:
                gate = gate or message.method in CLIENT_REQUESTS
                exchange, lines = self._message(judge_client_request(message, wire.policy), now)
                records += lines
                if exchange is not None:
                    opened.append(exchange)
        return Step(records, forward, gate=gate, opened=tuple(opened))

    def _message(self, one: Judgement, now: Stamp) -> tuple[Exchange | None, list[str]]:
        wire = self.connection
        message = one.message
        method = message.method
        if method is None:
            return None, [wire.malformed(message.source, "neither a request nor an answer", now, SERVER_TO_CLIENT)]
        if message.id_key is None and one.decision is None:
            return None, [wire.notification(message, method, now, SERVER_TO_CLIENT)]
        place = wire.recorder.place(meta_text(message, "traceparent"))
        seq = wire.recorder.next_seq()
        exchange = wire.exchange(one, place, seq, now, SERVER_TO_CLIENT)
        if exchange is not None:
            wire.from_server.add(exchange)
        if one.decision is None:
            return exchange, []
        return exchange, [wire.decision(one, place, seq, now, SERVER_TO_CLIENT, None)]

    def _edited(self, message: Message, raw: bytes, *, batch: bool) -> tuple[bytes | None, bool, Message]:
        """What the client gets for a tools/list answer that is edited: the bytes, whether ours, the answer as read."""
        wire = self.connection
        asked = wire.from_client.first(message.id_key)
        policy = wire.policy
        if policy is None or not policy.hides or asked is None or asked.method != "tools/list":
            return None, False, message

        def hidden(name: str) -> bool:
            return policy.hides_tool(canonical_name(wire.server, "tool", name), wire.trust)

        try:
            if batch:
                raise FrameError("it stands in an array")
            text = hide_tools(read_strict(raw).messages[0], hidden)
        except (ValueError, RecursionError) as problem:
            said = f"Wiretrap could not take hidden tools out of this answer: {problem}"
            replaced = error(asked.id_text, NOT_READABLE, said).encode("utf-8", "surrogateescape") + b"\n"
            return replaced, True, read_loose(replaced).messages[0]
        if text is None:
            return None, False, message
        edited = text[:-1].encode()
        return edited, False, read_loose(edited).messages[0]

    def _guarded(self, raw: bytes, now: Stamp) -> Step | None:
        """Refuse what is, or may be read as, a client request that is denied; None when the line may go its way."""
        wire = self.connection
        try:
            line = read_strict(raw)
        except FrameError as problem:
            denied = tuple(one for one in readings(raw) if self._denies(one.method))
            if not denied:
                return None
            decision = Decision("deny", "one reading", str(problem), True)
            record = wire.unread_decision(raw, str(problem), denied, decision, now, SERVER_TO_CLIENT)
            said = f"Wiretrap refused this request: {problem}"
            replies = [error(text, NOT_READABLE, said) for text in answerable_ids(raw)[0]]
            return Step([record], back=_lines(replies))
        gone = [self._denies(message.method) for message in line.messages]
        if not any(gone):
            return None
        records: list[str] = []
        replies = []
        for message, cut in zip(line.messages, gone, strict=True):
            if not cut:
                continue
            one = judge_client_request(message, wire.policy)
            if wire.failed:
                reason = "the record cannot be written, so nothing is asked of the client"
                decision = Decision("deny", "recorder failed", reason, True, "error")
                one = one._replace(decision=decision, code=RECORDER_FAILED)
            lines, reply = wire.refusal(one, now, SERVER_TO_CLIENT)
            records += lines
            if reply is not None:
                replies.append(reply)
        if all(gone):
            return Step(records, back=_lines(replies))
        # In an array the other messages go on: most of them are answers that the client waits for.
        spans = [Span(message.start, message.end) for message in line.messages]
        rest = without(line.messages[0].text, spans, gone)[:-1].encode()
        step = self.line(rest, now)
        return step._replace(records=records + step.records, back=_lines(replies) + step.back)

    def _denies(self, method: str | None) -> bool:
        if method not in CLIENT_REQUESTS:
            return False
        policy = self.connection.policy
        return self.connection.failed or (
            policy is not None and policy.in_force and policy.judge_client_request(method).verdict == "deny"
        )

    def long_line(self, head: bytes, found: Mapping[str, bytes], now: Stamp, *, held: bool) -> Step:
        """A line past the cap, at its end; `head` is what was kept of it and `found` what was scanned.

        One that flowed is only recorded. One that was held, since it might have had to be judged, is replaced: its
        request is answered by an error, or it is answered itself where it asks something of the client.
        """
        wire = self.connection
        method = decoded(found.get("method", b""))
        id_text = usable_id(found)
        if isinstance(method, str) or id_text is None:
            text = head.decode("utf-8", "surrogateescape")
            record = wire.malformed(text, "it is longer than what is looked at", now, SERVER_TO_CLIENT, truncated=True)
            asks = held and isinstance(method, str) and id_text is not None
            back = _lines([error(id_text, NOT_READABLE, f"Wiretrap refused this request: {_TOO_LONG}")]) if (
                asks and id_text is not None) else b""  # fmt: skip
            return Step([record], back=back)
        record = wire.cut_answer(head, id_text, found, now, ours=held)
        said = f"Wiretrap could not pass this answer on: {_TOO_LONG}"
        return Step([record], _lines([error(id_text, NOT_READABLE, said)]) if held else b"")


def _lines(replies: list[str]) -> bytes:
    return "".join(f"{reply}\n" for reply in replies).encode("utf-8", "surrogateescape")
