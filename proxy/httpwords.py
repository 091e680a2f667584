"""HTTP headers that the proxy must understand: what goes on, whose host and origin it is, and what MCP says twice.

Refuses to know sockets and what becomes of a request.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from proxy.frames import Message
from proxy.judging import JUDGED, VERSION_KEY, meta_text
from proxy.webaddress import UrlError, read_url

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Names in lower case with their values, in the order in which they came; a name may stand more than once."""


class Fields(list[tuple[bytes, bytes]]):
    """Headers as they were read, which nobody changes: many ask for one by its name, and find it at once."""

    __slots__ = ("_named", "_of_mcp", "made")

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        super().__init__(pairs)
        self._named: dict[bytes, list[bytes]] = {}
        for key, one in self:
            self._named.setdefault(key, []).append(one)
        self._of_mcp = _of_mcp(self)
        self.made: dict[object, Headers] = {}
        """What was made of them before, by what for: who reads the same bytes again is given the same Fields."""

    def named(self, name: bytes) -> list[bytes]:
        """Every value of a header."""
        return self._named.get(name, [])

    @property
    def of_mcp(self) -> list[tuple[bytes, bytes]]:
        """Those that MCP speaks of."""
        return self._of_mcp


def _of_mcp(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    # A server behind a gateway may take Mcp_Name for Mcp-Name (RFC 3875, section 4.1.18).
    dashed = [(key.replace(b"_", b"-"), one) for key, one in headers if key.startswith(b"mcp")]
    return [pair for pair in dashed if pair[0].startswith(b"mcp-")]


def of_mcp(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers whose names begin with mcp-, or with what some servers take for that, under the one name."""
    return headers.of_mcp if isinstance(headers, Fields) else _of_mcp(headers)


_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
"""What speaks of one connection only (RFC 9110, section 7.6.1)."""

SESSION = b"mcp-session-id"
LAST_EVENT = b"last-event-id"
_MADE = 8
"""Things that are made of one head and remembered."""
_KEPT = frozenset({b"content-length", b"content-type", b"content-encoding", b"host", b"authorization", SESSION})
"""What nobody can have taken out by naming it in Connection."""
_BASE64 = re.compile(r"=\?base64\?([A-Za-z0-9+/=_-]*)\?=", re.IGNORECASE)
_PLAIN_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


class Head(NamedTuple):
    """The head of a request: `target` is path and query as they came."""

    method: bytes
    target: bytes
    headers: Headers


class Origin(NamedTuple):
    """Where a server is: scheme, host without brackets, port.

    `own`: its clients use its own address, and not one of ours, so that nothing that names it is rewritten.
    """

    scheme: str
    host: str
    port: int
    own: bool = False

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL and in a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


DEFAULT_PORTS = {"http": 80, "https": 443}


def read_origin(url: str) -> tuple[Origin, str]:
    """The origin of an http or https URL, and the path behind it. Raises UrlError."""
    parts = read_url(url)
    if parts.query or parts.fragment:
        raise UrlError("the URL has a query or a fragment; give the address alone, an agent sends the rest itself")
    return Origin(parts.scheme, parts.host, parts.port or DEFAULT_PORTS[parts.scheme]), parts.path


def values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """Every value of a header."""
    if isinstance(headers, Fields):
        return headers.named(name)
    return [value for key, value in headers if key == name]


def value(headers: Headers, name: bytes) -> bytes:
    """The first value of a header, b"" without one."""
    if isinstance(headers, Fields):
        found = headers.named(name)
        return found[0] if found else b""
    return next((found for key, found in headers if key == name), b"")


def end_to_end(headers: Headers, gone: Iterable[bytes] = ()) -> Headers:
    """The headers that go on: all but those of this one connection, and those in `gone`."""
    drop = _HOP.union(gone)
    for one in values(headers, b"connection"):
        drop = drop.union({part.strip().lower() for part in one.split(b",")} - _KEPT)
    return [(key, one) for key, one in headers if key not in drop]


def media_type(headers: Headers) -> str:
    """The media type of a body, in lower case and without its parameters."""
    return value(headers, b"content-type").partition(b";")[0].strip().lower().decode("latin-1")


def other_charset(headers: Headers) -> str | None:
    """The encoding of characters that a content type names where it is not UTF-8, which JSON is always in."""
    for one in values(headers, b"content-type"):
        for part in one.decode("latin-1").split(";")[1:]:
            key, _, named = part.partition("=")
            charset = named.strip().strip("\"'").lower()
            if key.strip().lower() == "charset" and charset not in _PLAIN_CHARSETS:
                return charset or "none"
    return None


def is_form(headers: Headers) -> bool:
    """Whether a body says that it is a form, which no reader of JSON-RPC takes."""
    return media_type(headers) in _FORMS and len(values(headers, b"content-type")) == 1


def once(headers: Headers, key: object, make: Callable[[], Headers]) -> Headers:
    """A copy of what was made of some headers, made once."""
    if not isinstance(headers, Fields):
        return make()
    found = headers.made.get(key)
    if found is None:
        if len(headers.made) >= _MADE:
            headers.made.clear()
        found = headers.made[key] = make()
    return list(found)


def to_upstream(headers: Headers, upstream: Origin, *, plain: bool) -> Headers:
    """The headers of a request as the server gets them. `plain` asks for an answer without encoding, to be edited."""
    return once(headers, (upstream, plain), lambda: _to_upstream(headers, upstream, plain=plain))


def _to_upstream(headers: Headers, upstream: Origin, *, plain: bool) -> Headers:
    own = value(headers, b"host").lower()
    gone = [b"host", b"expect"]
    if upstream.own:
        gone.append(b"proxy-authorization")  # a client of a forward proxy says that to us
    if plain:
        gone.append(b"accept-encoding")
    if values(headers, b"transfer-encoding"):
        gone.append(b"content-length")
    found: Headers = [(b"host", value(headers, b"host") if upstream.own else upstream.authority.encode())]
    for key, one in end_to_end(headers, gone):
        if key == b"origin" and not upstream.own and one.lower() in (b"http://" + own, b"https://" + own):
            found.append((key, str(upstream).encode()))
        else:
            found.append((key, one))
    if plain:
        found.append((b"accept-encoding", b"identity"))
    return found


def header_text(raw: bytes) -> str | None:
    """A header's value, decoded (MCP 2026-07-28, basic/transports); None where it is broken."""
    try:
        text = raw.decode("utf-8")
        match = _BASE64.fullmatch(text)
        return (
            text if match is None else b64decode(match[1].translate(str.maketrans("-_", "+/")), validate=True).decode()
        )
    except ValueError:
        return None


def disagreement(headers: Headers, message: Message | None) -> str | None:
    """How the headers say something else than the body, in words; None where they agree, or say nothing.

    `message` is the one message of the body, None where there is not one (an array, or no message at all).
    """
    given = of_mcp(headers)
    if not given:
        return None
    target: str | None = None
    if message is not None and message.method is not None:
        keys = {JUDGED[message.method][1]} if message.method in JUDGED else {"name", "uri", "taskId"}
        found = [message.given[key] for key in ("name", "uri", "taskId") if key in keys & message.given.keys()]
        target = next((one for one in found if isinstance(one, str)), None)
    version = None if message is None else meta_text(message, VERSION_KEY)
    body = {
        b"mcp-method": None if message is None else message.method,
        b"mcp-name": target,
        b"mcp-protocol-version": version,
    }
    for name, said in body.items():
        there = [one for key, one in given if key == name]
        if not there or (name == b"mcp-protocol-version" and said is None and len(set(there)) == 1):
            continue
        shown = name.decode().title()
        if len(there) > 1:
            return f"the header {shown} stands {len(there)} times"
        text = header_text(there[0])
        if text is None or text != said:
            return f"the header {shown} says {(text or 'what cannot be read')[:80]!r}, and the body {_shown(said)}"
    return None


def _shown(said: str | None) -> str:
    return "does not" if said is None else repr(said[:80])
