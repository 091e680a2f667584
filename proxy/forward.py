"""The forward proxy as an application: which server a request is for, and who passes it on.

Requests to servers of ours go the way of `proxy.http`, those to other hosts pass unread. Refuses to know ports,
processes and tunnels.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from proxy.asking import Asked, Asking
from proxy.doors import AnyDoors
from proxy.http import HttpProxy, Scope, Send
from proxy.httprefusals import said
from proxy.httpwords import Head, Headers, Origin, end_to_end, values
from proxy.inbound import ClientGoneError, Inbound, Receive
from proxy.outbound import Outbound
from proxy.policy import Policy
from proxy.refusals import DENIED, SERVER_ENDED
from proxy.relay import Relay
from proxy.relays import Relays
from proxy.routes import THIS_MACHINE, RouteError, Routes, Target, name_of, place_of, read_authority, read_target
from proxy.seats import Seats
from proxy.serverline import UpstreamError
from proxy.upstream import Upstream
from proxy.upstreamline import Line

if TYPE_CHECKING:
    from proxy.waiting import Waiting

_OURS = frozenset({b"proxy-connection", b"proxy-authenticate"})
"""What a client says to us and to nobody behind us; its Proxy-Authorization is heard first, and goes no further."""
_MOST = 64
"""Hosts that are no servers of ours to which connections are kept open."""


Address: TypeAlias = tuple[str, int]
"""An address and a port."""


def leads_to(server: str) -> str:
    """Why what leads to a server by another name is refused, in words."""
    return f"This leads to the server {server}, which has a policy; ask for it by its name, or name this host as well"


def _no_relay() -> Relay:
    raise AssertionError("a host that is no server of ours is not recorded")


def _no_policy(path: str | None) -> Policy | None:
    raise AssertionError("a host that is no server of ours is not judged")


class PassingOn(HttpProxy):
    """Requests to one other host, as they are."""

    def __init__(
        self,
        upstream: Upstream,
        whose: Callable[[Address, Address], str | None],
        refused: Callable[[str], None],
    ) -> None:
        """`whose` is the server that a connection has led to though nobody called it so; see `Forward.reached`.

        `refused` records that this was refused.
        """
        super().__init__(upstream, Asking(Seats(_no_relay, b""), None, _no_policy), AnyDoors(""), edits=False)
        self._upstream = upstream
        self._whose = whose
        self._refused = refused

    async def _work(self, head: Head, inbound: Inbound, out: Outbound) -> None:
        line: Line | None = None
        sending: asyncio.Future[None] | None = None
        try:
            body = await inbound.read(0)
            line = await self._upstream.line()
            server = self._whose(*line.ends)
            if server is not None:
                self._refused(server)
                await _refuse(out, 403, leads_to(server))
                return
            sending = asyncio.ensure_future(self._send(head, Asked(), line, body, inbound))
            answer = await line.head()
            await out.start(answer.status_code, end_to_end(list(answer.headers)))
            over = False
            while not over:
                data, over = await line.body()
                if data or over:
                    await out.body(data, ended=over)
        except ClientGoneError:
            return
        except UpstreamError as error:
            if not out.started:
                await out.whole(502, said(SERVER_ENDED, f"Wiretrap got no answer from the server: {error}"), [])
        finally:
            if sending is not None:
                sending.cancel()
            if line is not None:
                self.upstream.give_back(line)


class Watched(NamedTuple):
    """A server of ours: who may do what there, what opens connections of its record, and the key of the run.

    `edits`: policy edits its answers.
    """

    policy: Policy | None
    relays: Relays
    key: bytes
    edits: bool
    waiting: "Waiting | None" = None

    @property
    def in_force(self) -> bool:
        """Whether what cannot be read must not go on."""
        return self.policy is not None and self.policy.in_force


class Forward:
    """The application for requests that name their server in full. `port` is our own, where nobody is sent."""

    def __init__(
        self, routes: Routes, servers: Mapping[str, Watched], port: int, tls: ssl.SSLContext | None = None
    ) -> None:
        """`tls` says which certificates of servers are taken, None those of the system's store."""
        self.routes = routes
        self.servers = servers
        self.port = port
        self._tls = tls
        self._behind: dict[Origin, HttpProxy] = {}
        self._others: dict[Origin, PassingOn] = {}
        self.refused: Callable[[Target, str], None] = lambda target, server: None
        """Records that a request was refused which led to a server by another name."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request with a whole URL in its head."""
        out = Outbound(send)
        target = _target_of(scope)
        if scope.get("method") == "CONNECT":
            await _refuse(out, 400, "Wiretrap opens a tunnel on a connection of its own only")
            return
        if target.startswith("/") or target == "*":
            await _refuse(out, 400, "Wiretrap is a forward proxy here; it is asked by whole URL, or for a tunnel")
            return
        try:
            origin, authority, path = read_target(target)
        except RouteError as error:
            await _refuse(out, 400, f"Wiretrap cannot send this on: {error}")
            return
        if self.is_us(Target(origin.host, origin.port)):
            await _refuse(out, 508, "Wiretrap is asked to send this to itself")
            return
        # The URL decides, and a Host that differs gives way (RFC 9112, section 3.2.2).
        await self.behind(origin)(_at(scope, path, authority), receive, send)

    def is_us(self, target: Target) -> bool:
        """Whether that is this proxy itself."""
        return target.port == self.port and place_of(target.host) == THIS_MACHINE

    def server(self, target: Target) -> str | None:
        """The id of the server of ours there, None where there is none."""
        return self.routes.server(target)

    def reached(self, there: Address, here: Address) -> str | None:
        """The id of a server with a policy in force that a connection led to, by whatever name; None for any other.

        `there` and `here` are its ends: one whose ends have one address does not leave this machine.
        """
        server = self.server(Target(THIS_MACHINE if there[0] == here[0] else there[0], there[1]))
        return server if server is not None and self.servers[server].in_force else None

    def behind(self, origin: Origin) -> HttpProxy:
        """Who passes on what is for an origin."""
        plain = origin._replace(host=name_of(origin.host))
        found = self._behind.get(plain)
        if found is not None:
            return found
        server = self.server(Target(origin.host, origin.port))
        if server is not None:
            found = self._behind[plain] = _watching(Upstream(plain, self._tls), self.servers[server])
            return found
        other = self._others.pop(plain, None) or self._passing_on(plain)
        self._others[plain] = other
        if len(self._others) > _MOST:
            self._others.pop(next(iter(self._others))).upstream.close()
        return other

    def _passing_on(self, origin: Origin) -> PassingOn:
        def refused(server: str) -> None:
            self.refused(Target(origin.host, origin.port), server)

        return PassingOn(Upstream(origin, self._tls), self.reached, refused)

    def stop(self) -> None:
        """End what is under way."""
        for proxy in (*self._behind.values(), *self._others.values()):
            proxy.stop()

    def close_all(self, reason: str, not_exported: int | None = None) -> str:
        """End all connections of the record; what went wrong with any, "" where all are whole."""
        failure = ""
        for proxy in self._behind.values():
            proxy.asking.seats.close_all(reason, not_exported)
            failure = failure or proxy.asking.seats.failure
        return failure


class Inside:
    """The application for requests in a tunnel to a server of ours."""

    def __init__(self, forward: Forward, origin: Origin, told: Headers) -> None:
        """`told` are the client's credentials for us, from its request for the tunnel."""
        self.forward = forward
        self.origin = origin
        self._told = told

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of which the tunnel says where it goes."""
        target = _target_of(scope)
        if not target.startswith("/") and target != "*":
            try:
                origin, authority, path = read_target(target)
            except RouteError:
                origin, authority, path = Origin("", "", 0), "", ""
            if (origin.scheme, name_of(origin.host), origin.port) != (
                self.origin.scheme,
                name_of(self.origin.host),
                self.origin.port,
            ):
                await _refuse(Outbound(send), 400, "Wiretrap takes a path here, or a URL of the server of this tunnel")
                return
            scope = _at(scope, path, authority)
        else:
            scope = {**scope, "headers": _without_ours(scope)}
        other = self._elsewhere(_without_ours(scope))
        if other is not None:
            why = f"The Host of this request is the server {other}, and the tunnel leads to another"
            await _refuse(Outbound(send), 421, why)
            return
        if self._told:
            scope = {**scope, "headers": [*_without_ours(scope), *self._told]}
        await self.forward.behind(self.origin)(scope, receive, send)

    def _elsewhere(self, headers: Headers) -> str | None:
        """The server of ours that a Host names and the tunnel does not lead to, where a policy of either is in force.

        A gateway in front of both would take the request to that one, under the policy of this.
        """
        servers = self.forward.servers
        mine = self.forward.server(Target(self.origin.host, self.origin.port))
        for host in values(headers, b"host"):
            try:
                named = self.forward.server(read_authority(host.decode("latin-1").strip(), self.origin.port))
            except RouteError:
                continue
            if named is not None and named != mine and any(servers[one].in_force for one in (mine, named) if one):
                return named
        return None


def _watching(upstream: Upstream, server: Watched) -> HttpProxy:
    asking = Asking(
        Seats(server.relays.open, server.key), server.policy, server.relays.reload, server.relays.listed.mirrors
    )
    return HttpProxy(upstream, asking, AnyDoors(""), edits=server.edits, waiting=server.waiting)


async def _refuse(out: Outbound, status: int, why: str) -> None:
    await out.whole(status, said(DENIED, why), [])


def _target_of(scope: Scope) -> str:
    match scope:
        case {"raw_path": bytes() as path, "query_string": bytes() as query}:
            return (path + b"?" + query if query else path).decode("latin-1")
        case _:
            return ""


def _without_ours(scope: Scope) -> Headers:
    match scope:
        case {"headers": list() as headers}:
            return [(key, one) for key, one in headers if key not in _OURS]
        case _:
            return []


def _at(scope: Scope, target: str, authority: str) -> Scope:
    """The request as a server gets it: path alone, and its own name as Host."""
    path, _, query = target.encode("latin-1").partition(b"?")
    headers = [(b"host", authority.encode()), *(pair for pair in _without_ours(scope) if pair[0] != b"host")]
    return {**scope, "raw_path": path, "query_string": query, "headers": headers}
