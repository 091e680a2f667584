"""The URL of an OTLP receiver: http and https are OTLP over HTTP, grpc and grpcs OTLP over gRPC (record.md section 2).

Pure: refuses to know how anything is sent there.
"""

from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

PATH = "/v1/traces"
"""Where OTLP over HTTP takes traces, where the URL has no path of its own."""
GRPC_PORT = 4317
"""OTLP's own port for gRPC, where the URL has none."""


class EndpointError(ValueError):
    """A URL that spans cannot be sent to."""


class Endpoint(NamedTuple):
    """`url` is what the exporter is given: for HTTP a URL, for gRPC host and port. `shown` has no password in it."""

    url: str
    http: bool
    secure: bool
    shown: str


def parse_endpoint(text: str) -> Endpoint:
    """Read the URL that a person gave. Raises EndpointError."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise EndpointError(f"--otlp {text!r}: {error}") from None
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if parts.scheme not in ("http", "https", "grpc", "grpcs"):
        raise EndpointError(f"--otlp {shown!r}: the URL begins with http://, https://, grpc:// or grpcs://")
    if not host:
        raise EndpointError(f"--otlp {shown!r}: the URL names no host")
    secure = parts.scheme in ("https", "grpcs")
    if parts.scheme in ("http", "https"):
        path = parts.path if parts.path.strip("/") else PATH
        return Endpoint(urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")), True, secure, shown)
    if parts.path.strip("/") or parts.query or "@" in parts.netloc:
        raise EndpointError(f"--otlp {shown!r}: a gRPC receiver is a host and a port, without path, query or user")
    host = f"[{host}]" if ":" in host else host
    return Endpoint(f"{host}:{port or GRPC_PORT}", False, secure, shown)
