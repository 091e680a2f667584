"""HTTP in front of a server over stdio: Streamable HTTP of all revisions, made of lines (wire rules 16 and 17).

It stands where `proxy.http` has a server over HTTP, so what is judged and recorded is what the client sent and got.
Refuses to know ports and signals, and how a message is judged.
"""

import asyncio
from collections import OrderedDict
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from proxy.answering import Answering
from proxy.asking import Asked, Asking, Refusal
from proxy.bridgechecks import OLD_VERSIONS, Fault, Post, accepts, is_modern, read_post
from proxy.bridgeline import BridgeLine
from proxy.bridgesession import SessionRoom
from proxy.bridgeshared import SharedRoom
from proxy.child import StartError
from proxy.doors import Doors
from proxy.hosted import Hosted
from proxy.http import HttpProxy
from proxy.http1 import AnswerHead, RequestHead
from proxy.httpwords import SESSION, Head, Headers, Origin, value, values
from proxy.inbound import Inbound
from proxy.ledger import random_hex
from proxy.mcpheaders import INVALID_REQUEST, METHOD, VERSION, Mirrors
from proxy.nursery import Nursery
from proxy.outbound import Outbound
from proxy.refusals import SERVER_ENDED, error
from proxy.seats import IDLE, MOST
from proxy.serverline import ServerLine
from proxy.sse import new_event

if TYPE_CHECKING:
    from proxy.waiting import Waiting

PATH = b"/mcp"
NO_SESSION = -32001
"""The JSON-RPC code under an HTTP status of 404 for a session that is not there; the status alone is what counts."""
_ENDED = "the server ended"


class Bridge:
    """The server as an edge over HTTP sees it: one child a session of the older era, one for all of the new one."""

    def __init__(self, nursery: Nursery, path: bytes = PATH) -> None:
        self.origin = Origin("http", "stdio.invalid", 80)
        self.mirrors = Mirrors()
        self._nursery = nursery
        self._path = path
        self._rooms: OrderedDict[str, SessionRoom] = OrderedDict()
        self._shared: SharedRoom | None = None
        self._opening = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        self._stopped: asyncio.Future[None] | None = None

    async def line(self) -> BridgeLine:
        """A place for one exchange."""
        return BridgeLine(self._take)

    def give_back(self, line: ServerLine) -> None:
        """An exchange is over, or given up."""
        line.abort()

    def close(self) -> None:
        """The edge stops: nothing more is answered, and the children are ended."""
        if self._stopped is not None:
            return
        self._stopped = asyncio.ensure_future(self._nursery.end_all())
        for task in self._ending:
            task.cancel()
        for room in [*self._rooms.values(), self._shared]:
            if room is not None and room.hosted is not None:
                room.hosted.drop()

    async def closed(self) -> None:
        """Return when no child is left after `close`."""
        self.close()
        if self._stopped is not None:
            await self._stopped

    async def _take(self, line: BridgeLine, headers: Headers, head: RequestHead, body: bytes) -> None:
        if head.target.partition(b"?")[0] != self._path:
            line.whole(404)
        elif head.method == b"POST":
            post = read_post(headers, body, self.mirrors)
            if isinstance(post, Fault):
                line.refuse(post)
            else:
                await self._post(line, headers, post)
        elif head.method not in {b"GET", b"DELETE"} or is_modern(headers):
            line.headers.append((b"allow", b"POST" if is_modern(headers) else b"GET, POST, DELETE"))
            line.whole(405)
        elif head.method == b"GET" and not accepts(headers, "text/event-stream"):
            line.whole(406)
        else:
            room = self._room(line, headers, "null")
            if room is not None and head.method == b"GET":
                room.listen(line)
            elif room is not None:
                self._end(value(headers, SESSION).decode("latin-1"), "the session was ended")
                line.whole(204)

    async def _post(self, line: BridgeLine, headers: Headers, post: Post) -> None:
        messages = post.line.messages
        try:
            if post.modern:
                await (await self._shared_room(line.connection)).take(line, post)
            elif any(message.method == "initialize" for message in messages):
                if values(headers, SESSION) or len(messages) > 1 or messages[0].id_key is None:
                    why = "initialize begins a session, alone and as a request"
                    line.refuse(Fault(400, INVALID_REQUEST, why, messages[0].id_text or "null"))
                    return
                session_id, room = await self._open(line.connection)
                line.headers.append((SESSION, session_id.encode()))
                await room.take(line, post)
            else:
                at = None if post.line.batch else messages[0].id_text
                known = self._room(line, headers, at or "null")
                if known is not None:
                    await known.take(line, post)
        except StartError as problem:
            line.break_off(str(problem))

    def _room(self, line: BridgeLine, headers: Headers, id_text: str) -> SessionRoom | None:
        """The session that a request names; without one it is refused."""
        ids = values(headers, SESSION)
        told = value(headers, VERSION).decode("latin-1").strip()
        room = self._rooms.get(ids[0].decode("latin-1")) if ids else None
        if not ids:
            line.refuse(Fault(400, INVALID_REQUEST, "the header Mcp-Session-Id is missing", id_text))
        elif room is None:
            line.refuse(Fault(404, NO_SESSION, "there is no such session", id_text))
        elif told and told not in OLD_VERSIONS:
            line.refuse(Fault(400, INVALID_REQUEST, f"the protocol version {told[:40]!r} is not known", id_text))
        else:
            self._rooms.move_to_end(ids[0].decode("latin-1"))
            return room
        return None

    async def _open(self, connection: str) -> tuple[str, SessionRoom]:
        """A new session. Raises StartError."""
        self._tidy()
        room = SessionRoom()
        session_id = random_hex(32)
        child = self._nursery.start(connection)
        room.hosted = await Hosted(child, room.line, room.long, partial(self._end, session_id, _ENDED)).open()
        self._rooms[session_id] = room
        return session_id, room

    async def _shared_room(self, connection: str) -> SharedRoom:
        """The server of the new era, started for its first request and again for the first one after its end."""
        async with self._opening:
            room = self._shared
            if room is None:
                room = SharedRoom(self.mirrors)
                child = self._nursery.start(connection)
                room.hosted = await Hosted(child, room.line, room.long, self._shared_ended).open()
                self._shared = room
            return room

    def _shared_ended(self) -> None:
        room, self._shared = self._shared, None
        if room is not None:
            room.end(_ENDED)
            self._let_go(room.hosted)

    def _end(self, session_id: str, why: str) -> None:
        room = self._rooms.pop(session_id, None)
        if room is not None:
            room.end(why)
            self._let_go(room.hosted)

    def _let_go(self, hosted: Hosted | None) -> None:
        """A server is not needed any more: its input ends, and by and by so does it."""
        if hosted is None or self._stopped is not None:
            return
        hosted.close()
        task = asyncio.ensure_future(self._nursery.end(hosted.child.pid))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _tidy(self) -> None:
        """End the sessions that nobody used for long, and of too many the one that was used least lately."""
        old = monotonic() - IDLE
        for session_id, room in list(self._rooms.items()):
            if not room.busy and (room.used < old or len(self._rooms) >= MOST):
                self._end(session_id, "the session was idle")


class BridgeAnswering(Answering):
    """Passes on what a bridge answers: what is its own is recorded as such, and not as the server's (wire rule 10)."""

    async def pass_on(self, head: Head, asked: Asked, line: ServerLine, answer: AnswerHead, out: Outbound) -> None:
        """Pass an answer on."""
        fault = line.fault if isinstance(line, BridgeLine) else None
        if fault is None:
            await super().pass_on(head, asked, line, answer, out)
            return
        headers = list(answer.headers)
        self._headed(head, asked, answer.status_code, headers)
        self._end(asked, "protocol_error", str(fault.code), fault.why, ours=True)
        await out.start(answer.status_code, headers)
        await out.body(fault.body, ended=True)

    async def failed(self, asked: Asked, why: str, out: Outbound) -> None:
        """The server ended; in the middle of a stream the error is its last event."""
        ids = self._ids(asked)
        if not out.started or not ids:
            await super().failed(asked, why, out)
            return
        reason = f"Wiretrap got no answer from the server: {why}"
        events = [new_event("message", "", error(text, SERVER_ENDED, reason).encode()) for text in ids]
        self._end(asked, "protocol_error", str(SERVER_ENDED), reason, ours=True)
        await out.body(b"".join(events), ended=True)


class BridgeProxy(HttpProxy):
    """The application in front of a bridge."""

    def __init__(
        self,
        bridge: Bridge,
        asking: Asking,
        doors: Doors,
        *,
        edits: bool,
        waiting: "Waiting | None" = None,
        spoils: bool = False,
    ) -> None:
        """As for HttpProxy."""
        super().__init__(bridge, asking, doors, edits=edits, waiting=waiting, spoils=spoils)
        self.bridge = bridge
        self.answering = BridgeAnswering(bridge, asking.seats, edits=self.edits)

    async def _asked(self, head: Head, inbound: Inbound, body: bytes) -> Asked:
        asked = await super()._asked(head, inbound, body)
        if asked.refusal is not None and asked.refusal.status == 400 and head.method == b"POST":
            # What a server must refuse anyway has the code that a server gives.
            fault = read_post(head.headers, body, self.bridge.mirrors)
            if isinstance(fault, Fault) and (values(head.headers, METHOD) or is_modern(head.headers)):
                asked.refusal = Refusal(fault.status, fault.body)
        return asked

    async def _send(self, head: Head, asked: Asked, line: ServerLine, body: bytes, inbound: Inbound) -> None:
        if isinstance(line, BridgeLine) and asked.seat is not None:
            line.connection = asked.seat.relay.session.recorder.identity.connection
        await super()._send(head, asked, line, body, inbound)
