"""One session of an older client over HTTP, and the server over stdio that is its own (up to 2025-11-25).

Ids and messages are what client and server wrote. Over stdio nothing says what a message of the server's own is about,
so the bridge chooses the stream that it goes on. Refuses to know headers and processes.
"""

from collections import deque
from time import monotonic

from proxy.bridgechecks import Fault, Post
from proxy.bridgeids import META, TOKEN, inner, one_line
from proxy.bridgeline import BridgeLine
from proxy.frames import Line, Message, read_loose
from proxy.fromclient import BATCH_VERSION
from proxy.hosted import Hosted
from proxy.ids import IdKey, answered_key, id_key
from proxy.longlines import LongMessage
from proxy.mcpheaders import INVALID_REQUEST
from proxy.members import FrameError
from proxy.refusals import NOT_READABLE, error

WAITING = 256
"""Messages that wait for a listening stream; of more the oldest is given up."""
_OF_A_CALL = "notifications/message"


def too_long(long: LongMessage) -> list[str]:
    """The errors in place of answers that were too long to be passed on."""
    said = "Wiretrap could not pass this answer on: it is longer than what is looked at"
    ids = [one.id_text for one in long.scanner.envelopes if one.text("method") is None]
    return [error(text, NOT_READABLE, said) for text in ids if text is not None]


class SessionRoom:
    """One session; `hosted` is set once its server runs."""

    def __init__(self) -> None:
        self.hosted: Hosted | None = None
        self.version = ""
        self.used = monotonic()
        self._open: dict[IdKey, deque[BridgeLine]] = {}
        self._expected: dict[BridgeLine, int] = {}
        self._calls: list[BridgeLine] = []
        self._tokens: dict[IdKey, BridgeLine] = {}
        self._asked: dict[IdKey, BridgeLine] = {}
        self._listening: list[BridgeLine] = []
        self._waiting: deque[bytes] = deque(maxlen=WAITING)

    @property
    def busy(self) -> bool:
        """Whether a client waits for something here."""
        return bool(self._calls or self._listening)

    async def take(self, line: BridgeLine, post: Post) -> None:
        """Send what a client posted on, and answer it by and by."""
        self.used = monotonic()
        hosted = self.hosted
        if hosted is None or hosted.over:
            line.break_off("the server ended")
            return
        if post.line.batch and self.version != BATCH_VERSION:
            line.refuse(Fault(400, INVALID_REQUEST, f"only the protocol version {BATCH_VERSION} has arrays"))
            return
        asked = [message for message in post.line.messages if message.method is not None and message.id_key is not None]
        for message in asked:
            self._expect(line, message)
        hosted.put(one_line(post.text))
        if asked:
            line.gone = lambda: self._left(line)
            line.wait_for_message()
        else:
            line.whole(202)
        await hosted.room()

    def _expect(self, line: BridgeLine, message: Message) -> None:
        key = message.id_key
        if key is None:
            return
        self._open.setdefault(key, deque()).append(line)
        self._expected[line] = self._expected.get(line, 0) + 1
        if message.method != "initialize" and line not in self._calls:
            self._calls.append(line)
        token = inner(message.text, message.params.get(META), TOKEN)
        name = None if token is None else id_key(token.value, message.text_of(token))
        if name is not None:
            self._tokens[name] = line

    def listen(self, line: BridgeLine) -> None:
        """A stream for what nobody asked for."""
        self.used = monotonic()
        self._listening.append(line)
        line.gone = lambda: self._left(line)
        line.begin()
        line.wait_for_message()
        while self._waiting:
            line.message(self._waiting.popleft())

    def _left(self, line: BridgeLine) -> None:
        """A stream is over, whoever ended it; up to 2025-11-25 that cancels nothing."""
        self.used = monotonic()
        for lines in (self._calls, self._listening):
            if line in lines:
                lines.remove(line)
        self._expected.pop(line, None)
        for table in (self._tokens, self._asked):
            for key in [key for key, one in table.items() if one is line]:
                del table[key]

    def line(self, raw: bytes) -> None:
        """A line of the server."""
        try:
            read = read_loose(raw)
        except FrameError:
            return  # over stdio a client passes over what is no message
        if read.batch and self._answers_one(read):
            self._answer(raw.strip(), read.messages)
            return
        for message in read.messages:
            data = message.source.encode("utf-8", "surrogateescape")
            if message.is_answer:
                self._answer(data, (message,))
            else:
                self._unasked(message, data)

    def long(self, long: LongMessage) -> None:
        """A line of the server that is too long to be passed on."""
        for text in too_long(long):
            self.line(text.encode())

    def _answers_one(self, read: Line) -> bool:
        waiting = [self._asker(one)[1] for one in read.messages if one.is_answer]
        lines = {lines[0] for lines in waiting if lines}
        return len(lines) == 1 and len(waiting) == len(read.messages) and all(waiting)

    def _asker(self, message: Message) -> "tuple[IdKey | None, deque[BridgeLine] | None]":
        """The request that an answer is to, and the lines that wait for it."""
        key = None if message.id_key is None else answered_key(message.id_key, self._open)
        return key, None if key is None else self._open.get(key)

    def _answer(self, data: bytes, messages: tuple[Message, ...]) -> None:
        line: BridgeLine | None = None
        for message in messages:
            key, waiting = self._asker(message)
            if key is None or not waiting:
                continue
            line = waiting.popleft()
            if not waiting:
                del self._open[key]
            result = message.members.get("result")
            if not self.version and result is not None and isinstance(result.value, dict):
                self.version = str(result.value.get("protocolVersion", ""))
            if line in self._expected:
                self._expected[line] -= 1
        if line is None:
            return
        if self._expected.get(line, 0) > 0:
            line.message(data)
        else:
            line.last(data)
            self._left(line)

    def _unasked(self, message: Message, data: bytes) -> None:
        line = self._stream(message)
        if line is None:
            self._waiting.append(data)
            return
        if message.id_key is not None:
            self._asked[message.id_key] = line
        line.message(data)

    def _stream(self, message: Message) -> BridgeLine | None:
        """Where a message goes that answers nothing: with what it is about where it says so."""
        call = self._calls[-1] if self._calls else None
        listening = self._listening[-1] if self._listening else None
        named = {"notifications/progress": ("progressToken", self._tokens),
                 "notifications/cancelled": ("requestId", self._asked)}.get(message.method or "")  # fmt: skip
        if named is not None:
            member = message.params.get(named[0])
            key = None if member is None else id_key(member.value, message.text_of(member))
            if key in named[1]:
                return named[1][key]
        if len(self._calls) == 1 and (message.id_key is not None or message.method == _OF_A_CALL):
            return call
        return listening or call

    def end(self, why: str) -> None:
        """The session is over: whoever still waits for an answer learns it."""
        for lines in self._open.values():
            for line in lines:
                line.break_off(why)
        self._open.clear()
        for line in [*self._calls, *self._listening]:
            line.finish()
            self._left(line)
