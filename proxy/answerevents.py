"""What a server answers over HTTP in a stream of events, looked at on its way; edited if policy says so.

Refuses to know sockets and headers: it is given the bytes of a body and says which bytes go on.
"""

from collections.abc import Callable

from proxy.answers import LARGE, AnswerError, is_message, messages
from proxy.connection import Step
from proxy.frames import CAP
from proxy.lines import Part
from proxy.pouring import Look
from proxy.replays import Replays
from proxy.sse import Event, EventReader, new_event, with_data
from proxy.strand import Strand
from proxy.unpack import Unpacker

_SPARE = 65536


class Stream:
    """A body that is a stream of events. `edits` says at any time whether policy edits them."""

    def __init__(
        self,
        strand: Callable[[], Strand],
        unpacker: Unpacker | None,
        edits: Callable[[], bool],
        *,
        replays: Replays | None = None,
        resumed: bool = False,
        endpoint: "Callable[[bytes], tuple[Strand, bytes]] | None" = None,
    ) -> None:
        """`strand` is asked for once, when a message comes. `replays` are the events of its session, None without one.

        `resumed`: the client takes a stream up again, so that events may come that came before.
        `endpoint` is told the address in the first event of a stream of 2024-11-05; it gives the strand that the stream
        belongs to then, and the address as the client gets it. None where the stream can be none.
        """
        self.holds = False
        self.wait = 0.0
        self.silent = False
        self.back: list[bytes] = []
        self.look: Look | None = None
        self._find_strand = strand
        self._strand: Strand | None = None
        self._unpacker = unpacker
        self._edits = edits
        self._replays = replays
        self._resumed = resumed
        self._passing = False
        """Whether the event that comes in pieces is nothing of ours."""
        self._endpoint = endpoint
        self._reader = EventReader(CAP)
        self._held = bytearray()
        self._base = 0
        self._large = False
        self._cutting = False
        """Whether the event that flows in is kept back."""

    def waits(self) -> int:
        """Others may come behind these events, in whose order they are recorded."""
        return 0

    def catch_up(self) -> None:
        """Nothing waits."""

    async def settle(self) -> None:
        """Record the answers among the events; a large one beside what else is under way."""
        if self._strand is None or not self._strand.session.owes:
            return
        large, self._large = self._large, False
        if large:
            await self._strand.settle_beside()
        else:
            self._strand.settle()

    def feed(self, chunk: bytes, *, ended: bool) -> bytes:
        """What of it goes on: all, or up to the last event that is whole where events may be edited."""
        if self._unpacker is not None:
            self._observe(self._unpacker.feed(chunk), ended=ended)
            return chunk
        self._held += chunk
        out: list[bytes] = []
        for event in self._reader.feed(chunk):
            self._event(event, out)
        if ended:
            # What no blank line ends is no event, but some readers take it for one.
            rest = bytes(self._held)
            out_of_rest: list[bytes] = []
            for event in self._reader.feed(b"\n\n"):
                self._event(event, out_of_rest)
            whole = b"".join(out_of_rest)
            out.append(rest if whole in {rest, rest + b"\n", rest + b"\n\n"} or not rest else whole)
            self._held.clear()
        elif self._endpoint is None and not self._edits():
            self._give(self._reader.at, out)
        elif self._reader.quiet:
            self._give(self._reader.line_start, out)
        elif len(self._held) > CAP + _SPARE:
            raise AnswerError("an event that may have to be edited is too long")
        return b"".join(out)

    def _observe(self, copy: bytes, *, ended: bool) -> None:
        for event in self._reader.feed(copy + (b"\n\n" if ended else b"")):
            step = self._step(event)
            if step is not None and step.forward != event.piece.data:
                raise AnswerError("an event that had to be kept back is packed")

    def _give(self, to: int, out: list[bytes]) -> None:
        count = to - self._base
        if count > 0:
            out.append(bytes(self._held[:count]))
            self._drop(to)

    def _drop(self, to: int) -> None:
        del self._held[: max(to - self._base, 0)]
        self._base = max(to, self._base)

    def _step(self, event: Event) -> Step | None:
        """What an event leads to; None where it holds no message, and for one that is repeated and was recorded.

        Where policy may edit it nothing is taken for a repeat: what went on as it is then might not now.
        """
        piece = event.piece
        edits = self._edits()
        if piece.part in {Part.WHOLE, Part.FIRST}:
            ours = event.has_data and (event.name in {"", "message"} or is_message(piece.data))
            self._passing = not ours or (self._resumed and not edits and self._is_replay(event))
        if self._passing:
            return None
        if self._strand is None:
            self._strand = self._find_strand()
        self._large = self._large or len(piece.data) > LARGE
        step = self._strand.take(piece) if edits else self._strand.take_all([piece])[0]
        if self._replays is not None and event.id and piece.part is Part.WHOLE and step.forward == piece.data:
            self._replays.note(event.id, piece.data)
        return step

    def _is_replay(self, event: Event) -> bool:
        whole = event.piece.part is Part.WHOLE and bool(event.id)
        return whole and self._replays is not None and self._replays.has(event.id, event.piece.data)

    def _event(self, event: Event, out: list[bytes]) -> None:
        piece = event.piece
        self._give(event.start, out)
        begun = event.start < self._base
        if self._endpoint is not None and event.has_data:
            told = self._endpoint
            self._endpoint = None
            if event.name == "endpoint" and piece.part is Part.WHOLE:
                self._strand, address = told(piece.data)
                if address != piece.data and not begun:
                    out.append(with_data(bytes(self._held[: event.end - self._base]), address))
                    self._drop(event.end)
                    return
                self._give(event.end, out)
                return
        step = self._step(event)
        if step is not None and step.back:
            self.back += messages(step.back)
        if step is not None:
            self.wait, self.silent = max(self.wait, step.wait), self.silent or bool(step.kept)
        if step is None or step.forward == piece.data:
            self._give(event.end, out)
            return
        if piece.part is Part.FIRST:
            self._cutting = not begun
        if (begun and piece.part is Part.WHOLE) or (piece.part is not Part.WHOLE and not self._cutting):
            raise AnswerError("an event had to be kept back when a part of it was on its way")
        if piece.part is Part.WHOLE:
            found = messages(step.forward) if step.forward.strip() else []
            out.append(with_data(bytes(self._held[: event.end - self._base]), found[0] if found else b""))
            out += [new_event(event.name, "", message) for message in found[1:]]
        elif piece.part is Part.LAST:
            out += [new_event(event.name, event.id, message) for message in messages(step.forward)]
        self._drop(event.end)
