"""Where a request through a forward proxy goes, and which server of ours that is, however its host is spelled.

Refuses to know sockets and names that only a resolver knows.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal, NamedTuple

from proxy.glob import check_server_id
from proxy.httpwords import DEFAULT_PORTS, Origin

_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?")
_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE)
_PART = re.compile(r"0[xX][0-9a-fA-F]{1,8}|[0-9]{1,11}")
_REQUEST_LINE = re.compile(rb"[!-~]+ [!-~]+ HTTP/1\.[01]\r?")
_PRINTABLE = re.compile(rb"[ -~]*\r?")
_TLS_HANDSHAKE = b"\x16"
"""The content type of a TLS record that holds a ClientHello (RFC 8446, section 5.1)."""
THIS_MACHINE = "localhost"


class RouteError(ValueError):
    """A server or an address that cannot be used: which, and what was expected."""


class Target(NamedTuple):
    """Where somebody wants to go: the host as it was spelled, without brackets, and the port."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as they stand in a request for a tunnel."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Entry(NamedTuple):
    """A host that a server is at; port None where it is any."""

    server: str
    host: str
    port: int | None


def read_authority(text: str, port: int | None = None) -> Target:
    """HOST:PORT, or HOST where a port is given for one without. Raises RouteError."""
    match = _AUTHORITY.fullmatch(text)
    host = "" if match is None else match[1] or match[2]
    number = port if match is None or match[3] is None else int(match[3])
    if match is None or number is None or not 0 < number < 65536 or not name_of(host):
        raise RouteError(f"{text[:200]!r} is no host with a port")
    return Target(host, number)


def read_target(url: str) -> tuple[Origin, str, str]:
    """Of the URL in the head of a request: origin, host and port as they stand there, path and query.

    Raises RouteError.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise RouteError(f"{url[:200]!r} is no http or https URL")
    scheme, authority, rest = match[1].lower(), match[2], match[3]
    host, port = read_authority(authority, DEFAULT_PORTS[scheme])
    return Origin(scheme, host, port, own=True), authority, rest if rest.startswith("/") else f"/{rest}"


def read_entry(text: str) -> Entry:
    """A server as an option gives it, ID=HOST or ID=HOST:PORT. Raises RouteError."""
    server, equals, place = text.partition("=")
    problem = check_server_id(server)
    if not equals or problem is not None:
        raise RouteError(f"--server {text}: {problem or 'write it as ID=HOST or ID=HOST:PORT'}")
    match = _AUTHORITY.fullmatch(place)
    host = "" if match is None else match[1] or match[2]
    port = None if match is None or match[3] is None else int(match[3])
    if not name_of(host) or (port is not None and not 0 < port < 65536):
        raise RouteError(f"--server {text}: {place!r} is no HOST or HOST:PORT")
    return Entry(server, host, port)


def _number_address(host: str) -> IPv4Address | None:
    """An address in the forms of inet_aton, which resolvers take too: 127.1, 0x7f000001, 0177.0.0.1."""
    parts = host.split(".")
    if len(parts) > 4 or not all(_PART.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [int(part, 8) if part[:1] == "0" and part.isdigit() else int(part, 0) for part in parts]
    except ValueError:
        return None
    *first, last = numbers
    if any(number > 255 for number in first) or last >= 256 ** (5 - len(parts)):
        return None
    return IPv4Address(sum(number << 8 * (3 - at) for at, number in enumerate(first)) + last)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(host)
    except ValueError:
        return _number_address(host)
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped


def name_of(host: str) -> str:
    """The one spelling of a host: lower case, without the dot of the root, addresses as they are written shortest."""
    plain = host.lower().rstrip(".")
    address = _address(plain)
    return plain if address is None else str(address)


def place_of(host: str) -> str:
    """The same, with one name for all that is this machine."""
    name = name_of(host)
    address = _address(name)
    if address is not None:
        return THIS_MACHINE if address.is_loopback or address.is_unspecified else name
    return THIS_MACHINE if name.endswith(f".{THIS_MACHINE}") else name


class Routes:
    """Which server is at which host and port."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Raises RouteError where two servers are at one place."""
        self._exact: dict[tuple[str, int | None], str] = {}
        self._places: dict[tuple[str, int | None], str] = {}
        for entry in entries:
            there = self._exact.setdefault((name_of(entry.host), entry.port), entry.server)
            if there != entry.server:
                where = entry.host if entry.port is None else f"{entry.host}:{entry.port}"
                raise RouteError(f"--server: both {there} and {entry.server} are at {where}")
            self._places.setdefault((place_of(entry.host), entry.port), entry.server)

    def server(self, target: Target) -> str | None:
        """The id of the server there; None where there is none of ours."""
        name, place = name_of(target.host), place_of(target.host)
        for port in (target.port, None):
            found = self._exact.get((name, port)) or self._places.get((place, port))
            if found is not None:
                return found
        return None


def speech_of(data: bytes, limit: int) -> Literal["http", "tls", "other"] | None:
    """What the first bytes in a tunnel are the beginning of; None while that cannot be told yet.

    `limit`: bytes that the first line of a request may have.
    """
    if data[:1] == _TLS_HANDSHAKE:
        return "tls"
    line, ended, _ = data.partition(b"\n")
    if ended:
        return "http" if _REQUEST_LINE.fullmatch(line) else "other"
    return None if _PRINTABLE.fullmatch(line) and len(line) <= limit else "other"
