"""Addresses of the server in the headers of its answers, as addresses of ours: who follows them must not go round us.

Refuses to know what an answer says to MCP. A server that wants its client elsewhere can name any other host.
"""

from urllib.parse import urlsplit

from proxy.httpwords import DEFAULT_PORTS, Headers, Origin, end_to_end, once
from proxy.routes import place_of


def to_client(headers: Headers, upstream: Origin, host: bytes) -> Headers:
    """The headers of an answer as the client gets them; an address of the server's origin is one of ours.

    Else whoever follows a redirect would go round the proxy.
    """
    return once(headers, (upstream, host), lambda: _to_client(headers, upstream, host))


def _to_client(headers: Headers, upstream: Origin, host: bytes) -> Headers:
    found: Headers = []
    for key, one in end_to_end(headers):
        if key in {b"location", b"content-location"}:
            found.append((key, at_proxy(one.decode("latin-1"), upstream, host.decode("latin-1")).encode("latin-1")))
        else:
            found.append((key, one))
    return found


def at_proxy(url: str, upstream: Origin, host: str) -> str:
    """The URL with our own origin where it has the server's, however that is spelled; any other as it is.

    http at its own port and https at its own are one: the one sends to the other.
    """
    if upstream.own:
        return url
    try:
        parts = urlsplit(url)
        scheme = parts.scheme or upstream.scheme
        port = parts.port or DEFAULT_PORTS.get(scheme)
    except ValueError:
        return url
    if not parts.netloc or not parts.hostname or scheme not in DEFAULT_PORTS:
        return url
    usual = port == DEFAULT_PORTS[scheme] and upstream.port == DEFAULT_PORTS[upstream.scheme]
    if place_of(parts.hostname) != place_of(upstream.host) or not (port == upstream.port or usual):
        return url
    _, slashes, rest = url.partition("//")
    return f"http:{slashes}{host}{rest[len(parts.netloc) :]}"
