"""The URL of an HTTP server as a person gives it: what it has to name, and what may not stand in it.

Pure: refuses to know what is sent there. No message repeats a part of the URL that may be secret.
"""

from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

USER = "a user and a password may not stand in a URL, which is shown and recorded; send them in a header"
"""What is said of them, wherever a URL is given."""


class UrlError(ValueError):
    """A URL that nobody can be reached at; the message says what is wrong."""


class WebAddress(NamedTuple):
    """A URL in parts: host without brackets and in lower case, port None where it has none, the rest as it came."""

    scheme: str
    host: str
    port: int | None
    netloc: str
    path: str
    query: str
    fragment: str


def read_url(text: str, schemes: tuple[str, ...] = ("http", "https")) -> WebAddress:
    """A URL of one of the schemes, which names a host and no user. Raises UrlError."""
    said = f"{shown(text)} is no address of a server; it begins with {_either(schemes)} and names a host"
    if any(letter.isspace() or not letter.isprintable() for letter in text):
        raise UrlError(f"{said}, without blanks and control characters")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        # The reason that the library gives repeats what may be a password.
        raise UrlError(said) from None
    if "@" in parts.netloc:
        raise UrlError(USER)
    if parts.scheme not in schemes or not host or port == 0:
        raise UrlError(said)
    return WebAddress(parts.scheme, host, port, parts.netloc, parts.path, parts.query, parts.fragment)


def shown(text: str) -> str:
    """The URL in quotes, without what may be secret in it; `the URL` where nobody knows where that ends."""
    if "@" in text:
        return "the URL"
    head, mark, _ = text.partition("?")
    return repr(f"{head}?…" if mark else head)


def query_values(query: str) -> dict[str, str]:
    """The fields of a query by name, the last of each; what has no name is under ""."""
    return dict(parse_qsl(query)) or ({"": query} if query else {})


def _either(schemes: tuple[str, ...]) -> str:
    *others, last = [f"{scheme}://" for scheme in schemes]
    return f"{', '.join(others)} or {last}"
