"""Which connection of the record a request over HTTP belongs to: its session's, its event stream's, or the one that all
clients without a session share. Refuses to know what policy says: that never depends on an id that a client sends.
"""

from collections import OrderedDict
from collections.abc import Callable
from hmac import digest
from time import monotonic
from typing import Literal

from proxy import vocabulary as v
from proxy.arrears import Arrears
from proxy.heard import Heard
from proxy.httpwords import SESSION, Headers, values
from proxy.policy import Policy
from proxy.relay import Relay
from proxy.replays import Replays
from proxy.session import Session

IDLE = 1800.0
"""Seconds after which a session without a stream is taken for given up; servers do so as early."""
MOST = 512
"""Connections that are kept open; of more the one that was idle longest is closed. Each holds a span file open."""

Reason = Literal["session_ended", "idle", "client_ended", "server_ended"]


class Seat:
    """One connection of the record. `streams` counts the requests that are under way on it.

    `shared`: nothing ties the requests on it together, so that each has its own open ids.
    """

    def __init__(self, relay: Relay, key: bytes, *, shared: bool) -> None:
        self.relay = relay
        self.heard = Heard(relay.session.recorder, key)
        self.shared = shared
        self.streams = 0
        self.used = monotonic()
        self.closed = False
        self.ending = False
        """Whether nothing more may come, so that the last stream's end is the connection's."""
        self.session_id = ""
        self.endpoint = b""
        self.replays = Replays()

    def session(self) -> Session:
        """Where the messages of one request and its answers belong."""
        return self.relay.session.beside() if self.shared else self.relay.session

    def close(self, reason: str, not_exported: int | None = None) -> None:
        """Record that the connection ended, once."""
        if not self.closed:
            self.closed = True
            self.relay.close(reason, not_exported)


class Seats:
    """All connections of one proxy. `failure` is the first thing that went wrong with any record."""

    def __init__(self, open_relay: Callable[[], Relay], key: bytes) -> None:
        """`open_relay` begins a connection of the record, and raises SpanFileError; `key` is the run's."""
        self._open_relay = open_relay
        self._key = key
        self._shared: Seat | None = None
        self._all: OrderedDict[int, Seat] = OrderedDict()
        self._by_session: dict[str, Seat] = {}
        self._by_endpoint: dict[bytes, Seat] = {}
        self.arrears = Arrears()
        self._failure = ""
        self._calls = 0

    def __len__(self) -> int:
        return len(self._all)

    @property
    def calls(self) -> int:
        """Calls of tools that were decided on, on connections that are closed too."""
        return self._calls + sum(seat.relay.session.recorder.calls for seat in self._all.values())

    def adopt(self, policy: Policy | None) -> None:
        """Have every open connection judged by this policy from its next message on."""
        self.arrears.clear()
        for seat in self._all.values():
            seat.relay.adopt(policy)

    @property
    def failure(self) -> str:
        """What went wrong with some record, "" while all are whole."""
        return self._failure or next((seat.relay.failure for seat in self._all.values() if seat.relay.failure), "")

    def fail(self, why: str) -> None:
        """Note that a connection could not be recorded."""
        self._failure = self._failure or why

    def of(self, headers: Headers, target: bytes, *, opens: bool) -> Seat:
        """The connection of a request; `opens` where its body begins a session. Raises SpanFileError."""
        seat = self._by_endpoint.get(target)
        if seat is None and (ids := values(headers, SESSION)):
            session_id = ids[0].decode("latin-1")
            seat = self._by_session.get(session_id)
            if seat is None:
                seat = self.open(shared=False)
                self.name(seat, session_id)
        if seat is None and opens:
            seat = self.open(shared=False)
        if seat is None:
            if self._shared is None:
                self._shared = self.open(shared=True)
            seat = self._shared
        seat.heard.headers(headers)
        seat.heard.target(target)
        seat.used = monotonic()
        self._all.move_to_end(id(seat))
        return seat

    def open(self, *, shared: bool) -> Seat:
        """A new connection. Raises SpanFileError."""
        self._tidy()
        seat = Seat(self._open_relay(), self._key, shared=shared)
        self._all[id(seat)] = seat
        return seat

    def name(self, seat: Seat, session_id: str) -> None:
        """The server gave the connection its session, or a client goes on with one that began before us."""
        seat.session_id = session_id
        seat.heard.take([session_id])
        self._by_session[session_id] = seat
        keyed = digest(self._key, session_id.encode("latin-1", "replace"), "sha256").hex()[:32]
        seat.relay.session.recorder.also({v.SESSION_ID: keyed})

    def take_in(self, seat: Seat, endpoint: bytes) -> None:
        """A stream told its client where to post (HTTP with SSE, MCP 2024-11-05)."""
        seat.endpoint = endpoint
        self._by_endpoint[endpoint] = seat

    def settle(self, seat: Seat) -> None:
        """An opening request was answered without a session: what follows has none, and goes on here."""
        if self._shared is None:
            seat.shared = True
            self._shared = seat
        elif not seat.streams:
            version = seat.relay.session.connection.version
            self._shared.relay.session.connection.version = version or self._shared.relay.session.connection.version
            self.close(seat, "session_ended")

    def close(self, seat: Seat, reason: str, not_exported: int | None = None) -> None:
        """End a connection."""
        self._by_session.pop(seat.session_id, None)
        self._by_endpoint.pop(seat.endpoint, None)
        if self._all.pop(id(seat), None) is not None:
            self._calls += seat.relay.session.recorder.calls
        if self._shared is seat:
            self._shared = None
        seat.close(reason, not_exported)
        if seat.relay.failure:
            self.fail(seat.relay.failure)

    def close_all(self, reason: str, not_exported: int | None = None) -> None:
        """The proxy ends; `not_exported` counts what a live export lost."""
        self.arrears.clear()
        for seat in list(self._all.values()):
            self.close(seat, reason, not_exported)

    def _tidy(self) -> None:
        """Close what is idle too long, and of too many the one that was used least lately."""
        self.arrears.clear()
        old = monotonic() - IDLE
        for seat in list(self._all.values()):
            if seat.used >= old and len(self._all) < MOST:
                return
            if not seat.streams and seat is not self._shared:
                self.close(seat, "idle")
