"""One MCP connection through the proxy: lines in, steps out. What is recorded, forwarded and answered is decided here.

Pure: it is given the time and random ids, and refuses to know files, pipes and processes. The edge writes `records`
before it sends anything of the same step (wire rule 8), and says `unrecorded` where it could not.
"""

from collections.abc import Callable
from typing import Literal
from weakref import WeakSet

from proxy import vocabulary as v
from proxy.connection import Connection, Step
from proxy.fromclient import ClientSide
from proxy.fromserver import ServerSide
from proxy.held import Answer, HeldCall, Refused
from proxy.holding import abandon, answer
from proxy.plainway import PlainWay
from proxy.policy import Policy
from proxy.record import Identity, Recorder, Stamp
from proxy.spans import Attribute

Side = Literal["client", "server"]


class Session:
    """One connection: `client` and `server` take the lines of either side."""

    def __init__(
        self, identity: Identity, policy: Policy | None, version: str, new_id: Callable[[int], str], start: Stamp
    ) -> None:
        """`version` is ours, for the spans' scope; `new_id` gives as many random hex digits as it is asked for."""
        self.recorder = Recorder(identity, version, new_id)
        self._parts: WeakSet[Connection] = WeakSet()
        self._take(Connection(self.recorder, policy, start))

    def _take(self, connection: Connection) -> None:
        self._parts.add(connection)
        self.connection = connection
        self.plain = PlainWay(connection)
        self.client = ClientSide(connection)
        self.server = ServerSide(connection, self.plain)

    def beside(self) -> "Session":
        """A part of the same connection whose open requests are its own: an id that is open in both is two ids.

        Over HTTP without sessions each request has its own stream of answers, and clients do not know of each other.
        """
        other = object.__new__(Session)
        other.recorder, other._parts = self.recorder, self._parts
        mine = self.connection
        other._take(Connection(self.recorder, mine.policy, mine.start))
        other.connection.rounds = mine.rounds
        other.connection.version = mine.version
        other.connection.failed = mine.failed
        other.connection.splice = mine.splice
        other.connection.faults = mine.faults
        other.connection.holds = mine.holds
        return other

    def adopt(self, policy: Policy | None) -> None:
        """Judge by this policy from the next line on, also in the parts beside."""
        for part in list(self._parts):
            part.adopt(policy)

    @property
    def edits(self) -> bool:
        """Whether policy or a fault edits or replaces lines from the server, so that they must be held whole."""
        wire = self.connection
        return wire.denies_requests or wire.hides or (wire.faults is not None and wire.faults.edits)

    def opened(self) -> Step:
        """The connection was made."""
        return Step([self.recorder.opened(self.connection.start)])

    def line(self, side: Side, raw: bytes, now: Stamp) -> Step:
        """A whole line from a side."""
        if side == "server":
            return self.server.line(raw, now)
        step = self.plain.call(raw, now)
        if step is not None:
            return step
        if self.connection.passed:
            self.server.catch_up()
        return self.client.line(raw, now)

    def answer(self, held: HeldCall, said: Answer, now: Stamp) -> Step:
        """An answer to a held call: it goes on or is refused; nothing where it waits no longer."""
        if self.connection.passed:
            self.server.catch_up()
        return answer(self.connection, held, said, now)

    def abandon(self, now: Stamp) -> Step:
        """The client is gone: refuse every call that waits."""
        return abandon(self.connection, now)

    @property
    def owes(self) -> bool:
        """Whether anything that has gone on is not recorded yet."""
        wire = self.connection
        return bool(wire.passed or wire.owed or wire.late)

    def settle(self, most: int = -1) -> "list[str | bytes | bytearray]":
        """The span lines that are owed for what has gone on; of what is unread yet only for so many lines."""
        self.server.catch_up(most)
        return self.connection.settle()

    def unrecorded(self, side: Side, step: Step, now: Stamp) -> Step:
        """The step in place of one whose records could not be written: from here on no call is let through.

        A step without a gate goes on as it is: its effect is done, or it is no call (wire rule 9).
        """
        self.connection.failed = True
        if step.held:
            refused = [self.answer(held, Refused("the record failed"), now) for held in step.held]
            self.connection.freed += step.held
            return Step([], back=step.back + b"".join([one.back for one in refused]))
        if not step.gate:
            return step
        for exchange in step.opened:
            self.connection.from_client.withdraw(exchange)
            self.connection.from_server.withdraw(exchange)
        again = self.line(side, step.forward or step.kept, now)
        return Step([], again.forward, again.back if step.kept else step.back + again.back)

    def closed(self, reason: str, now: Stamp, recorded: int, dropped: int, not_exported: int | None = None) -> Step:
        """The connection ended, and why; `recorded` and `dropped` count the spans so far, without this step's own.

        `not_exported` is how many of them a live export has lost; None without one.
        """
        records = self.connection.drain(now)
        attributes: dict[str, Attribute] = {
            v.CLOSE_REASON: reason,
            v.SPANS_RECORDED: recorded + len(records) + 1,
            v.SPANS_DROPPED: dropped,
        }
        if not_exported is not None:
            attributes[v.EXPORT_DROPPED] = not_exported
        if self.connection.version:
            attributes[v.PROTOCOL_VERSION] = self.connection.version
        return Step([*records, self.recorder.closed(self.connection.start, now, attributes)])
