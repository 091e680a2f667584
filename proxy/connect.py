"""Stdio in front of a server over HTTP: lines of a client become requests, and what comes back lines, in both eras.

It has to write the headers, and follows the streams, that a client over HTTP would. Refuses to know pipes and signals.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from proxy import vocabulary as v
from proxy.bridgechecks import MODERN
from proxy.connectasked import Asked, Reading
from proxy.connectwords import as_line, sent_with, servers_own_error, told
from proxy.exchange import ended, requested
from proxy.frames import Message, read_loose
from proxy.http1 import AnswerHead, RequestHead
from proxy.httpwords import SESSION, Headers, media_type, value
from proxy.ids import IdKey
from proxy.judging import VERSION_KEY, meta_text
from proxy.ledger import now
from proxy.mcpheaders import METHOD, VERSION, Mirrors, made
from proxy.members import FrameError
from proxy.plainbody import EncodingError, PlainBody
from proxy.refusals import SERVER_ENDED, error
from proxy.relay import Passage, Relay
from proxy.serverline import Server, ServerLine, UpstreamError
from proxy.spans import encode_attribute

_ERROR_BODY = 1024 * 1024
"""Bytes of the body of an HTTP error that are looked at for a message."""
ORDER = 5.0
"""Seconds that a notification has to be accepted before the next message goes out behind it."""
_LONGEST_RETRY = 60.0
FAREWELL = 0.5
"""Seconds that the end of a session has."""
_POSTED = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]

Write = Callable[[bytes], Awaitable[None]]


class Connector:
    """One client over stdio and its server over HTTP. `write` gives the client whole lines."""

    def __init__(self, server: Server, target: bytes, given: Headers, relay: Relay, write: Write) -> None:
        """`target` is the path of the server's URL, `given` the headers that a person wants sent."""
        self.server = server
        self.relay = relay
        self.session_id = b""
        self.on_session: Callable[[bytes], None] = lambda session_id: None
        self._target = target
        self._given = given
        self._write = write
        self._version = ""
        self._modern = ""
        self._mirrors = Mirrors()
        self._tasks: dict[asyncio.Task[None], Asked] = {}
        self._listening: asyncio.Task[None] | None = None

    async def line(self, raw: bytes) -> None:
        """A line of the client that policy lets through."""
        try:
            read = read_loose(raw)
        except FrameError:
            read = None
        messages = [] if read is None else list(read.messages)
        if not raw.strip():
            return
        asked = Asked([one for one in messages if one.method is not None and one.id_key is not None])
        version = max((meta_text(one, VERSION_KEY) or "" for one in messages), default="")
        modern = version >= MODERN or (bool(self._modern) and not self._version and not asked.open)
        self._modern = version if version >= MODERN else self._modern
        if modern and not asked.open and messages and messages[0].method == "notifications/cancelled":
            self._cancel(requested(messages[0]))
            return
        headed = asyncio.Event()
        task = asyncio.create_task(self._post(raw, messages, asked, headed, modern=modern))
        self._tasks[task] = asked
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        if any(one.method == "initialize" for one in messages):
            await headed.wait()  # what follows needs the session that its answer names
        elif not asked.open:
            await asyncio.wait({task}, timeout=ORDER)
        if any(one.method == "notifications/initialized" for one in messages) and self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    def _cancel(self, key: IdKey | None) -> None:
        """Since 2026-07-28 the end of its stream is how a request is cancelled over HTTP."""
        for task, asked in self._tasks.items():
            if key is not None and key in asked.open:
                task.cancel()

    async def _post(
        self, raw: bytes, messages: list[Message], asked: Asked, headed: asyncio.Event, *, modern: bool
    ) -> None:
        line: ServerLine | None = None
        try:
            body = as_line(raw).rstrip(b"\n")
            line = await self.server.line()
            headers = self._headers(messages, modern=modern) + _POSTED
            headers.append((b"content-length", b"%d" % len(body)))
            await line.ask(RequestHead(method=b"POST", target=self._target, headers=headers), body)
            answer = await line.head()
            if any(one.method == "initialize" for one in messages) and answer.status_code == 200:
                self._begun(value(list(answer.headers), SESSION))
            headed.set()
            await self._answer(line, answer, asked, modern=modern)
        except UpstreamError as problem:
            await self._failed(asked, str(problem))
        finally:
            headed.set()
            if line is not None:
                self.server.give_back(line)

    def _headers(self, messages: list[Message], *, modern: bool) -> Headers:
        if not modern:
            return sent_with(self.server.origin, self._given, self.session_id, self._version)
        headers = sent_with(self.server.origin, self._given, b"", "")
        if len(messages) != 1:
            return [*headers, (VERSION, self._modern.encode("ascii", "replace"))]
        said = made(messages[0], self._mirrors)
        if not value(said, VERSION):
            said[0] = (VERSION, self._modern.encode("ascii", "replace"))
        return headers + [pair for pair in said if pair[1] or pair[0] != METHOD]

    def _begun(self, session_id: bytes) -> None:
        self.session_id = session_id
        if session_id:
            self.on_session(session_id)

    async def _answer(self, line: ServerLine, answer: AnswerHead, asked: Asked, *, modern: bool) -> None:
        kind = media_type(list(answer.headers))
        plain = PlainBody(line, list(answer.headers))
        if answer.status_code == 200 and kind == "text/event-stream":
            reading = Reading()
            broken = await self._stream(plain, reading, asked)
            if asked.open and not modern and reading.last_id:
                broken = await self._again(reading, asked) or broken
            if asked.open:
                await self._failed(asked, broken or "its stream ended without one")
            return
        body = bytearray()
        over = False
        while not over:
            try:
                data, over = await plain.body()
            except EncodingError:
                if answer.status_code < 300:
                    raise
                break
            if answer.status_code < 300 or len(body) < _ERROR_BODY:
                body += data
        if answer.status_code < 300:
            if body.strip() and kind == "application/json":
                await self._give(bytes(body), asked)
            await self._failed(asked, "the HTTP answer holds none")
            return
        if len(asked.messages) == 1 and (own := servers_own_error(bytes(body), asked.messages[0])) is not None:
            await self._give(own, asked)
        await self._failed(asked, told(answer.status_code), answer.status_code)

    async def _stream(self, line: PlainBody, reading: Reading, asked: Asked) -> str:
        """Pass on what a stream brings, until it ends, or all that was asked is answered; why it broke, "" if not."""
        over = False
        try:
            while not over:
                data, over = await line.body()
                for message in reading.feed(data):
                    await self._give(message, asked)
        except UpstreamError as problem:
            return str(problem)
        return ""

    async def _again(self, reading: Reading, asked: Asked) -> str:
        """Take a stream up again for as long as the server has more of it; why that did not go on."""
        while asked.open:
            before = reading.last_id
            await asyncio.sleep(reading.retry)
            status, why = await self._get(reading, asked)
            if status != 200 or reading.last_id == before:
                return why or f"its stream cannot be taken up again (HTTP status {status})"
        return ""

    async def _get(self, reading: Reading, asked: Asked) -> tuple[int, str]:
        """One GET stream, from where `reading` is; its status, 0 without one, and why it broke."""
        line: ServerLine | None = None
        try:
            line = await self.server.line()
            headers = sent_with(self.server.origin, self._given, self.session_id, self._version)
            headers.append((b"accept", b"text/event-stream"))
            if reading.last_id:
                headers.append((b"last-event-id", reading.last_id.encode("utf-8", "replace")))
            await line.ask(RequestHead(method=b"GET", target=self._target, headers=headers), b"")
            answer = await line.head()
            status = int(answer.status_code)
            if status != 200 or media_type(list(answer.headers)) != "text/event-stream":
                return (status if status != 200 else 0), ""
            return status, await self._stream(PlainBody(line, list(answer.headers)), reading, asked)
        except UpstreamError as problem:
            return 0, str(problem)
        finally:
            if line is not None:
                self.server.give_back(line)

    async def _listen(self) -> None:
        """The stream of what nobody asked for, for as long as the server has one (up to 2025-11-25)."""
        reading, nothing = Reading(), Asked([])
        pause = reading.retry
        while True:
            status, _ = await self._get(reading, nothing)
            if status not in {0, 200}:
                return
            pause = reading.retry if status else min(pause * 2, _LONGEST_RETRY)
            await asyncio.sleep(pause)

    async def _give(self, data: bytes, asked: Asked) -> None:
        """Give the client a message of the server."""
        line = as_line(data)
        with suppress(FrameError):
            read = read_loose(line)
            asked.answered(read)
            if asked.lists:
                self._mirrors.learn(read.messages[0])
            result = read.messages[0].members.get("result")
            if any(one.method == "initialize" for one in asked.messages) and result is not None:
                said = result.value.get("protocolVersion") if isinstance(result.value, dict) else None
                self._version = said if isinstance(said, str) else self._version
        await self._pass(self.relay.from_server(line))

    async def _pass(self, passage: Passage) -> None:
        if passage.to_client:
            await self._write(passage.to_client)
        self.relay.settle()
        for seconds, data in passage.later:
            await asyncio.sleep(seconds)
            await self._write(data)
        for line in passage.to_server.splitlines():
            # What policy answers in the client's place.
            await self.line(line)

    async def _failed(self, asked: Asked, why: str, status: int | None = None) -> None:
        """Answer what got no answer: the reply is ours, and with an HTTP status the failure is the server's."""
        session = self.relay.session
        wire = session.connection
        reason = f"Wiretrap got no answer from the server: {why}"
        replies = b""
        for key in asked.open:
            exchange = wire.from_client.first(key)
            if exchange is None:
                continue
            wire.from_client.withdraw(exchange)
            more = [encode_attribute(v.ERROR_TYPE, str(status or SERVER_ENDED))]
            if status is not None:
                more.append(encode_attribute(v.HTTP_STATUS, status))
            record = ended(
                session.recorder,
                exchange,
                now(),
                "protocol_error",
                more,
                version=wire.version,
                failure=reason,
                ours=status is None,
            )
            self.relay.ledger.write([record])
            replies += error(exchange.id_text, SERVER_ENDED, reason).encode("utf-8", "surrogateescape") + b"\n"
        asked.open.clear()
        if replies:
            await self._write(replies)

    async def finish(self) -> None:
        """The client sends no more: wait for the answers that are still to come, but to no subscription."""
        for task, asked in list(self._tasks.items()):
            if any(one.method == "subscriptions/listen" for one in asked.messages):
                task.cancel()
        while self._tasks:
            await asyncio.wait(list(self._tasks))
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Give up what is under way, and end the session."""
        running = [*self._tasks, *([] if self._listening is None else [self._listening])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self.session_id:
            with suppress(TimeoutError, UpstreamError):
                async with asyncio.timeout(FAREWELL):
                    await self._leave()
        self.server.close()

    async def _leave(self) -> None:
        line = await self.server.line()
        try:
            headers = sent_with(self.server.origin, self._given, self.session_id, self._version)
            await line.ask(RequestHead(method=b"DELETE", target=self._target, headers=headers), b"")
            await line.head()
        finally:
            self.server.give_back(line)
