"""An answer of the server on its way to the client over HTTP: head and chunks at once, looked at and, where policy says
so, edited. Refuses to know how requests come in, and how a message is judged.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from urllib.parse import urljoin

from proxy import vocabulary as v
from proxy.answerevents import Stream
from proxy.answers import Answer, AnswerError, Body, Unwatched
from proxy.answertypes import AnswerType, answer_type
from proxy.asking import MODERN, Asked, Rest
from proxy.exchange import SERVER_TO_CLIENT, Exchange, ended
from proxy.http1 import AnswerHead
from proxy.httprefusals import said
from proxy.httpwords import (
    LAST_EVENT,
    SESSION,
    Head,
    Headers,
    value,
    values,
)
from proxy.ledger import now
from proxy.outbound import Outbound, silence
from proxy.ownaddress import at_proxy, to_client
from proxy.postback import PostBack
from proxy.readings import answerable_ids
from proxy.refusals import NOT_READABLE, SERVER_ENDED
from proxy.seats import Seat, Seats
from proxy.serverline import Server, ServerLine, next_of
from proxy.spanfile import SpanFileError
from proxy.spans import encode_attribute
from proxy.strand import Strand
from proxy.unpack import Unpacker

STOPPED = "Wiretrap was told to stop"


def _are_calls(opened: list[Exchange]) -> bool:
    """Whether requests are calls alone, whose answers say nothing that a later request is judged by."""
    return bool(opened) and all(one.method == "tools/call" for one in opened)


class Answering:
    """Passes answers on from one server."""

    def __init__(self, upstream: Server, seats: Seats, *, edits: bool) -> None:
        """`edits`: policy edits answers."""
        self.upstream = upstream
        self.seats = seats
        self.edits = edits
        self._back = PostBack(upstream)

    async def pass_on(self, head: Head, asked: Asked, line: ServerLine, answer: AnswerHead, out: Outbound) -> None:
        """Pass an answer on. Raises UpstreamError where it is cut short, AnswerError where it must not go on."""
        status, headers = answer.status_code, answer.headers
        self._headed(head, asked, status, headers)
        kind = answer_type(headers)
        stream = kind.stream
        unfit = "is packed, though it was asked for plain" if kind.encodings else kind.problem
        if self._edits(asked) and unfit and (stream or asked.session is not None):
            reason = f"Wiretrap cannot edit this answer: it {unfit}"
            await out.whole(502, said(NOT_READABLE, reason, self._ids(asked)), [])
            self._end(asked, "protocol_error", str(NOT_READABLE), reason, ours=True)
            return
        unpacker = Unpacker() if kind.encodings else None
        watch = self._watch(head, asked, headers, kind, unpacker)
        shown = to_client(headers, self.upstream.origin, value(head.headers, b"host"))
        if not watch.holds:
            await out.start(status, shown, followed=not stream and line.came())
        over = False
        while not over:
            data, over = await next_of(line, watch.look, out.pour)
            going = watch.feed(data, ended=over)
            if over and unpacker is not None and unpacker.problem and not isinstance(watch, Unwatched):
                self._otherwise(head, asked, unpacker.problem)
            while watch.back:
                told = asked.seat is not None and asked.seat.endpoint
                self._back.send(head, told or head.target, watch.back.pop(0))
            if over and watch.silent:
                if going and not watch.holds:
                    # What came before the answer that is withheld.
                    await out.body(going, ended=False)
                self._settled(asked, status, stream=stream)
                await watch.settle()
                await silence()
            try:
                if watch.wait:
                    await asyncio.sleep(watch.wait)
                    watch.wait = 0.0
                if watch.holds and over:
                    length = [] if status in {204, 304} else [(b"content-length", b"%d" % len(going))]
                    await out.start(status, [(key, one) for key, one in shown if key != b"content-length"] + length)
                if over or (going and not watch.holds):
                    await out.body(going, ended=over)
                if over and status == 200 and _are_calls(asked.opened) and (size := watch.waits()):
                    asked.rest = Rest(partial(self._finish, asked, watch, status), size)
                    return
            except BaseException:
                await watch.settle()
                raise
            await watch.settle()
        self._settled(asked, status, stream=stream)

    def _finish(self, asked: Asked, watch: Answer, status: int) -> None:
        """What is left to do of an answer that has gone on whole, of a request that is over."""
        watch.catch_up()
        self._settled(asked, status, stream=False)
        self._over(asked)

    def _edits(self, asked: Asked) -> bool:
        return self.edits or (asked.session is not None and asked.session.connection.failed)

    def _headed(self, head: Head, asked: Asked, status: int, headers: Headers) -> None:
        """What the head of an answer says of the session."""
        seat = asked.seat
        for exchange in asked.opened:
            if status != 200:
                exchange.status = status
        if seat is None and head.method == b"DELETE" and values(head.headers, SESSION):
            seat = self._seat(head)
            asked.seat = seat
            if seat is not None:
                seat.streams += 1
        if seat is None:
            return
        seat.heard.answered(headers)
        session_id = value(headers, SESSION)
        if asked.opens and session_id and not seat.session_id:
            self.seats.name(seat, session_id.decode("latin-1"))
        if values(head.headers, SESSION) and not seat.endpoint:
            seat.ending = seat.ending or status == 404 or (head.method == b"DELETE" and 200 <= status < 300)

    def _seat(self, head: Head) -> Seat | None:
        try:
            return self.seats.of(head.headers, head.target, opens=False)
        except SpanFileError as error:
            self.seats.fail(str(error))
            return None

    def _watch(
        self,
        head: Head,
        asked: Asked,
        headers: Headers,
        kind: AnswerType,
        unpacker: Unpacker | None,
    ) -> Answer:
        """Who looks at an answer."""
        if asked.session is None and not (kind.stream and head.method in {b"GET", b"POST"}):
            return Unwatched()
        if kind.problem:
            self._otherwise(head, asked, kind.problem)
        if kind.unread:
            return Unwatched()
        if asked.session is not None and asked.seat is not None:
            strand = asked.seat.relay.strand("server", asked.session)
            if kind.stream and not kind.json:
                return self._stream(head, asked.seat, strand, unpacker, lambda: self._edits(asked))
            length = value(headers, b"content-length")
            size = int(length) if length.isdigit() else None
            return Body(strand, unpacker, holds=self._edits(asked), sure=kind.json, size=size)
        return self._listening(head, asked, unpacker)

    def _otherwise(self, head: Head, asked: Asked, why: str) -> None:
        """Record that a client may read something else in an answer than we do."""
        seat = asked.seat or self._seat(head)
        if seat is not None:
            connection = (asked.session or seat.relay.session).connection
            why = f"the answer {why}"
            seat.relay.ledger.write([connection.malformed("", why, now(), SERVER_TO_CLIENT)])

    def _stream(
        self, head: Head, seat: Seat | None, strand: Strand, unpacker: Unpacker | None, edits: Callable[[], bool]
    ) -> Stream:
        """Who looks at a stream of which it is known where it belongs."""
        resumed = head.method == b"GET" and bool(values(head.headers, LAST_EVENT))
        replays = None if seat is None or seat.shared else seat.replays
        return Stream(lambda: strand, unpacker, edits, replays=replays, resumed=resumed)

    def _listening(self, head: Head, asked: Asked, unpacker: Unpacker | None) -> Answer:
        """Who looks at a stream that a client listens to, which answers no request of its own."""

        def joined(seat: Seat | None) -> Strand:
            if seat is None:
                raise AnswerError("the stream cannot be recorded")
            seat.streams += 1
            asked.seat = seat
            asked.session = seat.session()
            return seat.relay.strand("server", asked.session)

        def told(data: bytes) -> tuple[Strand, bytes]:
            """The stream is one of 2024-11-05, and says where its client posts."""
            text = data.decode("utf-8", "surrogateescape").strip()
            base = f"{self.upstream.origin}{head.target.decode('latin-1')}"
            ours = at_proxy(text, self.upstream.origin, value(head.headers, b"host").decode("latin-1"))
            address = urljoin(base, text)
            _, _, rest = address.partition("//")
            target = "/" + rest.partition("/")[2]
            try:
                seat = self.seats.open(shared=False)
            except SpanFileError as error:
                self.seats.fail(str(error))
                raise AnswerError("the stream cannot be recorded") from None
            self.seats.take_in(seat, target.encode("utf-8", "surrogateescape"))
            seat.ending = True
            return joined(seat), data if ours == text else ours.encode("utf-8", "surrogateescape")

        has_session = bool(values(head.headers, SESSION))
        if has_session:
            strand = joined(self._seat(head))
            return self._stream(head, asked.seat, strand, unpacker, lambda: self._edits(asked))
        return Stream(
            lambda: joined(self._seat(head)),
            unpacker,
            lambda: self._edits(asked),
            endpoint=told if head.method == b"GET" and unpacker is None else None,
        )

    def _open(self, asked: Asked) -> list[Exchange]:
        """The requests of this one that no answer has ended yet."""
        if asked.session is None:
            return []
        still = asked.session.connection.from_client.open
        return [exchange for exchange in asked.opened if exchange in still.get(exchange.key, ())]

    def _ids(self, asked: Asked) -> list[str]:
        return [exchange.id_text for exchange in self._open(asked)]

    def _end(self, asked: Asked, outcome: str, kind: str, why: str | None, *, ours: bool) -> None:
        """Record the end of the requests that got no message for an answer."""
        session, seat = asked.session, asked.seat
        if session is None or seat is None:
            return
        more = [encode_attribute(v.ERROR_TYPE, kind)] if kind else []
        for exchange in self._open(asked):
            session.connection.from_client.withdraw(exchange)
            version = session.connection.version
            record = ended(
                session.recorder, exchange, now(), outcome, list(more), version=version, failure=why, ours=ours
            )
            seat.relay.ledger.write([record])

    def _settled(self, asked: Asked, status: int, *, stream: bool) -> None:
        """The body of an answer is over: who has no answer by now gets none here."""
        if status >= 300:
            self._end(asked, "protocol_error", str(status), f"HTTP status {status}", ours=False)
        elif not stream and status != 202:
            self._end(asked, "unanswered", "", None, ours=False)

    async def failed(self, asked: Asked, why: str, out: Outbound) -> None:
        """The server gave no answer, or not a whole one: say so where nothing has gone on yet (wire rule 10)."""
        if out.started:
            return
        reason = f"Wiretrap got no answer from the server: {why}"
        body = said(SERVER_ENDED, reason, self._ids(asked))
        self._end(asked, "protocol_error", str(SERVER_ENDED), reason, ours=True)
        await out.whole(502, body, [])

    async def stopped(self, asked: Asked, body: bytes, out: Outbound, *, sent: bool) -> None:
        """We are told to stop, and nothing has gone on of an answer to this body; `sent`: the server may have it."""
        ids = self._ids(asked) if asked.opened else answerable_ids(body)[0]
        outcome = "unanswered" if sent else "protocol_error"  # what the server may have, it may have done
        self._end(asked, outcome, str(SERVER_ENDED), STOPPED, ours=True)
        await out.whole(503, said(SERVER_ENDED, STOPPED, ids), [(b"connection", b"close")])

    def over(self, asked: Asked) -> None:
        """A request is over, whoever ended it; what can be recorded of it later is."""
        rest, asked.rest = asked.rest, None
        if rest is None:
            self._over(asked)
        else:
            self.seats.arrears.put(rest.work, rest.size)

    def _over(self, asked: Asked) -> None:
        seat, session = asked.seat, asked.session
        if seat is None:
            return
        seat.streams -= 1
        root = seat.relay.session.connection
        if session is not None:
            seat.relay.strand("server", session).settle()
        if session is not None and session.connection is not root:
            for exchange in self._open(asked):
                # Closing the stream is the cancellation since 2026-07-28 (basic/utilities/cancellation).
                exchange.cancelled = exchange.cancelled or (asked.gone and exchange.version >= MODERN)
            seat.relay.ledger.write(session.connection.drain(now()))
            root.version = root.version or session.connection.version
        if seat.ending and not seat.streams:
            reason = "session_ended" if not seat.endpoint else "client_ended" if asked.gone else "server_ended"
            self.seats.close(seat, reason)
        elif asked.opens and not seat.session_id and not seat.endpoint:
            self.seats.settle(seat)
