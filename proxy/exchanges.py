"""The requests of one side that are open, by their ids. Refuses to know policy, bytes, and what is recorded."""

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from proxy.exchange import Exchange
from proxy.ids import IdKey, answered_key
from proxy.record import Stamp


class Tool(Protocol):
    """What the plain calls of one tool have in common."""

    @property
    def parent_id(self) -> str:
        """Whose children their spans are."""
        ...

    @property
    def called(self) -> tuple[str, ...]:
        """The pieces that are the same in the lines of those that are answered."""
        ...

    def exchange(self, call: "OpenCall") -> Exchange:
        """The exchange that such a call begins."""
        ...


OpenCall: TypeAlias = tuple[Tool, str, int, int, str, IdKey, int, str, str]
"""A plain call that waits for its answer, kept so until somebody asks for its Exchange, which takes time to make: the
tool, its span's id, when it came (CLOCK_MONOTONIC and Unix time), its id's text and key, its seq, the text of its
arguments, and the protocol version that it carries.
"""


@dataclass(slots=True)
class Exchanges:
    """The open requests of one side, by typed id; a reused open id keeps both, answered in order (wire rule 3).

    `calls` are plain ones whose id is open but once. `held` are those that a fault keeps from the other side, so that
    nothing answers them.
    """

    calls: dict[IdKey, OpenCall] = field(default_factory=dict)
    held: list[Exchange] = field(default_factory=list)
    _queues: dict[IdKey, list[Exchange]] = field(default_factory=dict)

    @property
    def open(self) -> dict[IdKey, list[Exchange]]:
        """All that are open, in the order of the answers that they wait for."""
        for key in list(self.calls):
            self._queue(key)
        return self._queues

    def is_open(self, key: IdKey) -> bool:
        """Whether a request with this id is open."""
        return key in self.calls or key in self._queues

    def add(self, exchange: Exchange) -> None:
        """Take an exchange in."""
        queue = self._queue(exchange.key)
        if queue is None:
            self._queues[exchange.key] = [exchange]
            return
        exchange.reused = queue[-1].reused = True
        queue.append(exchange)

    def take(self, key: IdKey | None, came: Stamp | None = None) -> Exchange | None:
        """The exchange that an answer with this id ends, or None where no request had asked for it when it `came`."""
        key, queue = self._answered(key, came)
        if key is None or not queue:
            return None
        exchange = queue.pop(0)
        if not queue:
            del self._queues[key]
        return exchange

    def first(self, key: IdKey | None) -> Exchange | None:
        """The exchange that `take` would give."""
        _, queue = self._answered(key, None)
        return queue[0] if queue else None

    def withdraw(self, exchange: Exchange) -> None:
        """Take out an exchange whose request was not sent after all."""
        queue = self._queue(exchange.key)
        if queue is not None and exchange in queue:
            queue.remove(exchange)
            if not queue:
                del self._queues[exchange.key]
        elif exchange in self.held:
            self.held.remove(exchange)

    def cancel(self, key: IdKey | None) -> bool:
        """Note that the requester gave up on a request, whose answer may still come; whether there is such a one."""
        queue = self._queue(key)
        for exchange in queue or ():
            exchange.cancelled = True
        for exchange in self.held:
            exchange.cancelled = exchange.cancelled or exchange.key == key
        return bool(queue)

    def drain(self) -> list[Exchange]:
        """All that is still open, in the order in which it was asked."""
        every = [*self.held, *(exchange for queue in self.open.values() for exchange in queue)]
        rest = sorted(every, key=lambda exchange: exchange.start)
        self._queues.clear()
        self.held.clear()
        return rest

    def _answered(self, key: IdKey | None, came: Stamp | None) -> tuple[IdKey | None, list[Exchange] | None]:
        """Which id an answer is to that came then, and the exchanges with that; another where clients take it so."""
        queue = self._queue(key)
        if key is None or (queue and (came is None or queue[0].start <= came)):
            return key, queue
        found = answered_key(key, {one for one, those in self.open.items() if came is None or those[0].start <= came})
        return found, None if found is None else self._queues[found]

    def _queue(self, key: IdKey | None) -> list[Exchange] | None:
        """The exchanges with this id, made where they were not."""
        if key is None:
            return None
        call = self.calls.pop(key, None)
        if call is not None:
            self._queues[key] = [call[0].exchange(call)]
        return self._queues.get(key)
