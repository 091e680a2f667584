"""Which Host and Origin are let in at a port of ours. Refuses to know sockets, and what a request asks."""

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from proxy.httpwords import DEFAULT_PORTS, Headers, values


class Doors:
    """Which Host and Origin are let in: since we rewrite Host, the server can no longer see a rebound name."""

    def __init__(self, bound: str, names: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        """`bound` is the address that we listen at; `names` and `origins` are let in besides."""
        self.any_address = bound in {"0.0.0.0", "::"}  # noqa: S104  (compared with, not bound to)
        self.names = frozenset(name.lower() for name in (bound, "localhost", *names))
        self.origins = frozenset(origin.lower() for origin in origins)
        self._known: bytes | None = None

    def _host(self, name: str) -> bool:
        if name in self.names:
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        # No name that is rebound to us is an address.
        return address.is_loopback or self.any_address

    def host(self, headers: Headers) -> bool:
        """Whether the request is for us by its one Host."""
        hosts = values(headers, b"host")
        if len(hosts) != 1:
            return False
        if hosts[0] == self._known:
            return True
        try:
            parts = urlsplit(f"//{hosts[0].decode('ascii')}")
            _ = parts.port
        except ValueError:
            return False
        plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
        fine = plain and parts.hostname is not None and self._host(parts.hostname)
        if fine:
            self._known = hosts[0]
        return fine

    def origin(self, headers: Headers) -> bool:
        """Whether the page that asks, if a page does, is of ours or of a server on this machine."""
        for one in values(headers, b"origin"):
            text = one.decode("latin-1").strip().lower()
            if text in self.origins:
                continue
            try:
                parts = urlsplit(text)
                host, _ = parts.hostname, parts.port
            except ValueError:
                return False
            if parts.scheme not in DEFAULT_PORTS or host is None or parts.path or not self._host(host):
                return False
        return True


class AnyDoors(Doors):
    """Lets all in: whoever can name a server in full is no web page that took our address for its own."""

    def host(self, headers: Headers) -> bool:
        """Any."""
        return True

    def origin(self, headers: Headers) -> bool:
        """Any."""
        return True
