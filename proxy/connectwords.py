"""What a client over stdio has to say in headers to a server over HTTP, and what such a server says without a message.

Pure. Refuses to know sockets and the record.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from proxy.bridgeids import one_line
from proxy.frames import Message, read_loose
from proxy.httpwords import SESSION, Headers, Origin
from proxy.mcpheaders import VERSION
from proxy.members import FrameError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "last-event-id",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class HeaderError(ValueError):
    """A header that cannot be sent; the message names it, and never says what is in it."""


def _header(option: str, name: str, value: str) -> tuple[bytes, bytes]:
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise HeaderError(f"{option}: {name[:40]!r} is no name of a header; write 'Name: value'")
    if name.lower() in _OURS or name.lower().startswith("mcp-"):
        raise HeaderError(f"{option} {name}: this header is the bridge's own")
    try:
        text = value.strip(" \t\r\n").encode("latin-1")
    except UnicodeEncodeError:
        raise HeaderError(f"{option} {name}: its value holds characters that no header carries") from None
    if any(byte < 32 or byte == 127 for byte in text):
        raise HeaderError(f"{option} {name}: its value holds a control character")
    return name.lower().encode(), text


def _unset(variable: str) -> str:
    """Why there is no value; what can be no variable's name may be the secret itself, and is not repeated."""
    if _VARIABLE.fullmatch(variable) is None:
        return "it takes the name of a variable, and this is none"
    return f"the variable {variable[:40]} is not set"


def read_headers(
    given: Iterable[str], named: Iterable[str], environment: Mapping[str, str], bearer: str | None = None
) -> Headers:
    """The headers of `--header 'Name: value'`, `--header-env Name=VARIABLE` and `--bearer-env VARIABLE`.

    Raises HeaderError.
    """
    found: Headers = []
    for one in given:
        name, colon, value = one.partition(":")
        if not colon:
            raise HeaderError("--header: a header is written 'Name: value'")
        found.append(_header("--header", name, value))
    for one in named:
        name, equals, variable = one.partition("=")
        if not equals or not variable:
            raise HeaderError("--header-env: write Name=VARIABLE")
        if variable not in environment:
            raise HeaderError(f"--header-env {name.strip()[:40]}: {_unset(variable)}")
        found.append(_header("--header-env", name, environment[variable]))
    if bearer is not None:
        if bearer not in environment:
            raise HeaderError(f"--bearer-env: {_unset(bearer)}")
        found.append(_header("--bearer-env", "Authorization", f"Bearer {environment[bearer]}"))
    return found


def sent_with(origin: Origin, given: Headers, session_id: bytes, version: str) -> Headers:
    """The headers that every request has; `session_id` and `version` are b"" and "" while there is none."""
    found: Headers = [(b"host", origin.authority.encode()), *given, (b"accept-encoding", b"identity")]
    if session_id:
        found.append((SESSION, session_id))
    if version:
        found.append((VERSION, version.encode("ascii", "replace")))
    return found


def as_line(data: bytes) -> bytes:
    """A message that came over HTTP as a line."""
    return one_line(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").strip())


def servers_own_error(body: bytes, asked: Message) -> bytes | None:
    """The server's error for a request, as a line under the request's id; None where the body holds none."""
    try:
        line = read_loose(body)
    except FrameError:
        return None
    message = line.messages[0]
    failure = message.members.get("error")
    if line.batch or failure is None or message.method is not None:
        return None
    # OAuth's errors have a member of that name too, which is a text.
    match failure.value:
        case {"code": int(), "message": str()}:
            pass
        case _:
            return None
    if message.id_key == asked.id_key:
        return as_line(body)
    own = message.members.get("id")
    if own is not None and own.value is not None:
        return None
    error = message.text_of(failure)
    return one_line(f'{{"jsonrpc":"2.0","id":{asked.id_text},"error":{error}}}')


def told(status: int) -> str:
    """A status in words."""
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    hint = {
        401: "; --header-env or --bearer-env gives credentials, and a client that signs in by itself needs "
        "`wiretrap proxy http` in place of `connect`",
        404: "; its session is gone, or the URL is another",
    }.get(status, "")
    return f"the server answered with the HTTP status {status}{phrase} and no message{hint}"
