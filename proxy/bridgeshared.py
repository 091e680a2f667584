"""The one server over stdio that all clients over HTTP share since 2026-07-28, where a request says all of itself.

The ids of several clients may be one, so towards the server each request has a number of the bridge's. Refuses to know
headers and processes.
"""

from dataclasses import dataclass

from proxy.bridgechecks import Post
from proxy.bridgeids import LOG_LEVEL, META, Own, about, answered, cancelled, inner, numbered, one_line, reported
from proxy.bridgeline import BridgeLine
from proxy.bridgesession import too_long
from proxy.exchange import requested
from proxy.frames import Message, read_loose
from proxy.hosted import Hosted
from proxy.ids import IdKey
from proxy.longlines import LongMessage
from proxy.mcpheaders import NO_METHOD, STATUSES, Mirrors
from proxy.refusals import error

LISTEN = "subscriptions/listen"


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that the server has under a number of ours."""

    line: BridgeLine
    own: Own
    key: IdKey
    method: str
    logs: bool
    """Whether it asked for log messages."""


class SharedRoom:
    """All clients of the new era."""

    def __init__(self, mirrors: Mirrors) -> None:
        self.hosted: Hosted | None = None
        self._mirrors = mirrors
        self._pending: dict[int, Pending] = {}
        self._last = 0

    async def take(self, line: BridgeLine, post: Post) -> None:
        """Send what a client posted on, and answer it by and by."""
        hosted = self.hosted
        if hosted is None or hosted.over:
            line.break_off("the server ended")
            return
        message = post.line.messages[0]
        if message.id_key is None:
            self._notification(hosted, message)
            line.whole(202)
        else:
            self._request(hosted, line, message, message.id_key)
        await hosted.room()

    def _request(self, hosted: Hosted, line: BridgeLine, message: Message, key: IdKey) -> None:
        self._last += 1
        number = self._last
        text, own = numbered(message, number)
        logs = inner(message.text, message.params.get(META), LOG_LEVEL) is not None
        self._pending[number] = Pending(line, own, key, message.method or "", logs)
        line.gone = lambda: self._cancel(number)
        hosted.put(text)
        line.wait_for_message()

    def _notification(self, hosted: Hosted, message: Message) -> None:
        if message.method != "notifications/cancelled":
            hosted.put(one_line(message.source))
            return
        key = requested(message)
        meant = [number for number, one in self._pending.items() if one.key == key]
        if len(meant) == 1:  # of several nobody knows whose is meant, and another client's must go on
            hosted.put(cancelled(message, meant[0]))

    def _cancel(self, number: int) -> None:
        """A client closed its stream, which is how it cancels."""
        hosted = self.hosted
        if self._pending.pop(number, None) is not None and hosted is not None:
            said = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},'
            hosted.put(f'{said}"reason":"the client closed its stream"}}}}\n'.encode())

    def line(self, raw: bytes) -> None:
        """A line of the server."""
        try:
            for message in read_loose(raw).messages:
                self._message(message)
        except ValueError:
            return  # over stdio a client passes over what is no message

    def long(self, long: LongMessage) -> None:
        """A line of the server that is too long to be passed on."""
        for text in too_long(long):
            self.line(text.encode())

    def _message(self, message: Message) -> None:
        if message.is_answer:
            self._answer(message)
        elif message.id_text is not None:
            self._request_of_server(message.id_text)
        elif message.method is not None:
            self._unasked(message)

    def _answer(self, message: Message) -> None:
        key = message.id_key
        one = self._pending.pop(int(key[1]), None) if key is not None and key[0] == "n" else None
        if one is None:
            return  # its client has gone
        if one.method == "tools/list":
            self._mirrors.learn(message)
        failure = message.members.get("error")
        code = failure.value.get("code") if failure is not None and isinstance(failure.value, dict) else None
        status = STATUSES.get(code, 200) if isinstance(code, int) else 200
        one.line.last(answered(message, one.own).encode("utf-8", "surrogateescape"), status)

    def _request_of_server(self, id_text: str) -> None:
        """No server asks a client by itself since 2026-07-28, and nobody could tell which client is meant."""
        if self.hosted is not None:
            said = error(id_text, NO_METHOD, "a server asks a client only inside its results since 2026-07-28")
            self.hosted.put(said.encode("utf-8", "surrogateescape") + b"\n")

    def _unasked(self, message: Message) -> None:
        number = about(message)
        if number is not None:
            one = self._pending.get(number)
        else:
            ones = [one for one in self._pending.values() if one.method != LISTEN]
            if message.method == "notifications/message":
                ones = [one for one in ones if one.logs]
            # Of several nobody knows whose it is, and it may hold what another client must not see.
            one = ones[0] if len(ones) == 1 else None
        if one is None:
            return
        if message.method == "notifications/cancelled" and number is not None:
            del self._pending[number]  # over HTTP the end of a subscription is the end of its stream
            one.line.finish()
            return
        one.line.message(reported(message, one.own).encode("utf-8", "surrogateescape"))

    def end(self, why: str) -> None:
        """The server ended: whoever still waits for an answer learns it."""
        for one in self._pending.values():
            one.line.break_off(why)
        self._pending.clear()
