"""The URL of an OTLP receiver: http and https are OTLP over HTTP, grpc and grpcs OTLP over gRPC (record.md section 2).

Pure: refuses to know how anything is sent there.
"""

import re
from typing import NamedTuple
from urllib.parse import urlunsplit

from proxy.webaddress import UrlError, query_values, read_url

PATH = "/v1/traces"
"""Where OTLP over HTTP takes traces, where the URL has no path of its own."""
GRPC_PORT = 4317
"""OTLP's own port for gRPC, where the URL has none."""


_QUERY = re.compile(r"\?[^\s\"'()<>]*")


class EndpointError(ValueError):
    """A URL that spans cannot be sent to."""


class Endpoint(NamedTuple):
    """`url` is what the exporter is given: for HTTP a URL, for gRPC host and port. `shown` has no query in it.

    `query` is that of the URL, which may hold a token.
    """

    url: str
    http: bool
    secure: bool
    shown: str
    query: str = ""

    @property
    def secrets(self) -> dict[str, str]:
        """The values of its query, by what a warning may call them."""
        return {f"--otlp, {name or 'its query'}": value for name, value in query_values(self.query).items()}

    def without_query(self, text: str) -> str:
        """What a library says of the endpoint, without the query, however it is quoted there."""
        if not self.query:
            return text
        for part in (self.query, *query_values(self.query).values()):
            text = text.replace(part, "…")
        return _QUERY.sub("?…", text)


def parse_endpoint(text: str) -> Endpoint:
    """Read the URL that a person gave. Raises EndpointError."""
    try:
        parts = read_url(text, ("http", "https", "grpc", "grpcs"))
    except UrlError as error:
        raise EndpointError(f"--otlp: {error}") from None
    shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
    secure = parts.scheme in ("https", "grpcs")
    if parts.scheme in ("http", "https"):
        path = parts.path if parts.path.strip("/") else PATH
        return Endpoint(
            urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")), True, secure, shown, parts.query
        )
    if parts.path.strip("/") or parts.query:
        raise EndpointError(f"--otlp: {shown!r}: a gRPC receiver is a host and a port, without path and query")
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    return Endpoint(f"{host}:{parts.port or GRPC_PORT}", False, secure, shown)
