"""The proxy over HTTP: requests in, judged and recorded, to one upstream origin and back (wire rule 16).

An ASGI application. Refuses to know ports and processes, and how a message is judged.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from proxy.answering import STOPPED, Answering
from proxy.answers import AnswerError
from proxy.asking import Asked, Asking, Refusal
from proxy.clientexchange import CANCELS
from proxy.doors import Doors
from proxy.frames import CAP
from proxy.held import Answer, Refused
from proxy.holding import ABANDONED
from proxy.http1 import RequestHead
from proxy.httprefusals import said
from proxy.httpwords import Head, to_upstream, values
from proxy.inbound import ClientGoneError, Inbound, Receive
from proxy.judging import edits_answers
from proxy.outbound import Outbound, silence
from proxy.refusals import DENIED
from proxy.serverline import Server, ServerLine, UpstreamError

if TYPE_CHECKING:
    from proxy.waiting import Waiting

Scope: TypeAlias = "MutableMapping[str, object]"
Send: TypeAlias = "Callable[[MutableMapping[str, object]], Awaitable[None]]"


SMALL = 32 * 1024
"""Bytes of a request that the system takes at once, whether the server reads them or not."""


class HttpProxy:
    """The application. `stop` ends all that is under way."""

    def __init__(
        self,
        upstream: Server,
        asking: Asking,
        doors: Doors,
        *,
        edits: bool,
        waiting: "Waiting | None" = None,
        spoils: bool = False,
    ) -> None:
        """`edits`: policy edits answers, so that they are asked for without an encoding; `spoils`: faults do.

        `waiting` is where calls wait for an approval; None where none does.
        """
        self.waiting = waiting
        self.upstream = upstream
        self.asking = asking
        self.doors = doors
        self.edits, self._spoils = edits or spoils, spoils
        self.answering = Answering(upstream, asking.seats, edits=self.edits)
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        head = _head(scope)
        if head is None:
            return
        out = Outbound(send, scope)
        refusal = self._door(head)
        if refusal is not None:
            await out.whole(refusal.status, refusal.body, refusal.headers)
            return
        inbound = Inbound(receive)
        if _cancels(scope):
            await self._here(head, inbound, out)
        else:
            await self._beside(head, inbound, out)

    async def _here(self, head: Head, inbound: Inbound, out: Outbound) -> None:
        """Serve a request whose task is cancelled when its client goes."""
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            await self._work(head, inbound, out)
        except asyncio.CancelledError:
            if not self._stopping or out.started:
                raise
            task.uncancel()
            await self.answering.stopped(Asked(), b"", out, sent=False)
        finally:
            self._running.discard(task)

    async def _beside(self, head: Head, inbound: Inbound, out: Outbound) -> None:
        """Serve a request, and look out for its client beside that."""
        work = asyncio.create_task(self._work(head, inbound, out))
        gone = asyncio.create_task(inbound.gone())
        self._running.add(work)
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._running.discard(work)
            work.cancel()
            gone.cancel()
            results = await asyncio.gather(work, gone, return_exceptions=True)
        if self._stopping and not out.started:
            await self.answering.stopped(Asked(), b"", out, sent=False)
        elif isinstance(results[0], Exception):
            raise results[0]

    def reload(self, path: str | None) -> None:
        """Judge by the policy of this file, None for none, from the next message of every connection on.

        Raises PolicyError, and then the old one stands.
        """
        policy = self.asking.reload(path)
        self.edits = self.answering.edits = edits_answers(policy) or self._spoils

    def stop(self) -> None:
        """End all exchanges that are under way: both sides see their connections close."""
        self._stopping = True
        for task in self._running:
            task.cancel()
        self.upstream.close()

    def _door(self, head: Head) -> Refusal | None:
        """Why a request is not let in at all; None where it is."""
        if not self.doors.host(head.headers):
            return Refusal(421, said(DENIED, "Wiretrap does not serve this Host; --allow-host adds one"))
        if not self.doors.origin(head.headers):
            return Refusal(403, said(DENIED, "Wiretrap does not let this Origin in; --allow-origin adds one"))
        if head.method == b"CONNECT":
            return Refusal(400, said(DENIED, "Wiretrap opens no tunnel to a server that it watches"))
        if not head.target.startswith(b"/") and head.target != b"*":
            return Refusal(400, said(DENIED, "Wiretrap takes a path here; it is no forward proxy"))
        return None

    async def _work(self, head: Head, inbound: Inbound, out: Outbound) -> None:
        try:
            body = await inbound.read(CAP)
            asked = await self._asked(head, inbound, body)
        except ClientGoneError:
            return
        if asked.seat is not None:
            asked.seat.streams += 1
        line: ServerLine | None = None
        sending: asyncio.Future[None] | None = None
        try:
            await self._approved(asked)
            if asked.refusal is not None:
                await out.whole(asked.refusal.status, asked.refusal.body, asked.refusal.headers)
                return
            if self._stopping:
                await self.answering.stopped(asked, body, out, sent=False)
                return
            if asked.silent:
                await silence()
            line = await self.upstream.line()
            going = self._send(head, asked, line, asked.forward or body, inbound)
            if inbound.ended.is_set() and len(body) <= SMALL:
                await going
            else:
                # The server may answer, or have to be read from, before it has taken all.
                sending = asyncio.ensure_future(going)
            answer = await line.head()
            await self.answering.pass_on(head, asked, line, answer, out)
        except UpstreamError as error:
            await self.answering.failed(asked, str(error), out)
        except AnswerError:
            return  # unfinished, so that the client sees it break off
        except asyncio.CancelledError:
            asked.gone = not self._stopping
            if asked.gone or out.started:
                raise
            await self.answering.stopped(asked, body, out, sent=line is not None)
        finally:
            if sending is not None:
                sending.cancel()
            if line is not None:
                self.upstream.give_back(line)
            self.answering.over(asked)

    async def _approved(self, asked: Asked) -> None:
        """Wait until what has to be approved is, or is refused. A client that goes away meanwhile gave it up."""
        waiting = self.waiting
        if waiting is None or asked.session is None:
            return
        freed = asked.session.connection.freed
        while freed:
            waiting.forget(freed.pop())
        if asked.held is None:
            return
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def settle(said: Answer) -> None:
            if not answer.done():
                answer.set_result(said)

        def settle_soon(said: Answer) -> None:
            with suppress(RuntimeError):  # all is over
                loop.call_soon_threadsafe(settle, said)

        held = asked.held
        if self._stopping:
            settle(Refused(STOPPED))
        else:
            waiting.ask(held, asked.session.recorder, settle_soon)
        try:
            said = await answer
        except asyncio.CancelledError:
            waiting.forget(held)
            self.asking.answered(asked, Refused(STOPPED if self._stopping else ABANDONED))
            raise
        self.asking.answered(asked, said)

    async def _asked(self, head: Head, inbound: Inbound, body: bytes) -> Asked:
        """What a request asks. One past the cap that does not go on is read to its end."""
        if len(body) <= CAP:
            return self.asking.whole(head.headers, head.target, body) if body else Asked()
        asked = self.asking.long(head.headers, head.target, body[:CAP])
        self.asking.rest(asked, body[CAP:], ended=inbound.ended.is_set())
        if not asked.flows:
            async for chunk in inbound.rest():
                self.asking.rest(asked, chunk, ended=inbound.ended.is_set())
        return asked

    async def _send(self, head: Head, asked: Asked, line: ServerLine, body: bytes, inbound: Inbound) -> None:
        headers = to_upstream(head.headers, self.upstream.origin, plain=self.edits)
        whole = inbound.ended.is_set()
        if values(head.headers, b"transfer-encoding"):
            headers.append((b"content-length", b"%d" % len(body)) if whole else (b"transfer-encoding", b"chunked"))
        try:
            question = RequestHead(head.method, head.target, headers)
            await line.ask(question, body if whole else self._flow(asked, body, inbound))
        except UpstreamError:
            return  # it may have answered already, and closed; if not, whoever reads the answer learns of it
        except ClientGoneError:
            line.abort()

    async def _flow(self, asked: Asked, body: bytes, inbound: Inbound) -> AsyncIterator[bytes]:
        yield body
        async for chunk in inbound.rest():
            self.asking.rest(asked, chunk, ended=inbound.ended.is_set())
            if chunk:
                yield chunk


def _cancels(scope: Scope) -> bool:
    extensions = scope.get("extensions")
    return isinstance(extensions, dict) and CANCELS in extensions


def _head(scope: Scope) -> Head | None:
    """The head of a request; None for what is none."""
    match scope:
        case {
            "type": "http",
            "method": str() as method,
            "raw_path": bytes() as path,
            "query_string": bytes() as query,
            "headers": list() as headers,
        }:
            return Head(method.encode(), path + b"?" + query if query else path, headers)
        case _:
            return None
