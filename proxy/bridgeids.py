"""Ids of a bridge's own in what many clients send to one server, and the clients' own again in what comes back.

Pure: text in, text out. Refuses to know who the clients are.
"""

from typing import NamedTuple

from proxy.frames import Message
from proxy.listing import Span, replaced
from proxy.members import STRICT, Member, scan_members

META = "_meta"
TOKEN = "progressToken"  # noqa: S105  (the name of a member)
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class Own(NamedTuple):
    """What a client wrote, as its text: its id, and its progress token, None without one."""

    id_text: str
    token: str | None


def one_line(text: str) -> bytes:
    """A message as a line: between the tokens of JSON a line end is a blank, and inside of them there is none."""
    return text.replace("\r", " ").replace("\n", " ").encode("utf-8", "surrogateescape") + b"\n"


def inner(text: str, holder: Member | None, key: str) -> Member | None:
    """A member of the object that `holder` has for its value; None also where that has no one reading."""
    if holder is None or not isinstance(holder.value, dict):
        return None
    try:
        members = scan_members(text, holder.start, STRICT).members
    except (ValueError, IndexError, RecursionError):
        return None
    return next((one for one in members if one.key == key), None)


def _edited(message: Message, edits: list[tuple[Member | None, str]]) -> str:
    spans = [(Span(member.start, member.end), text) for member, text in edits if member is not None]
    return replaced(message.text[: message.end], spans)[message.start :]


def numbered(message: Message, number: int) -> tuple[bytes, Own]:
    """A request, strictly read, as a line under another id and progress token, and what it had for them."""
    own = message.members["id"]
    token = inner(message.text, message.params.get(META), TOKEN)
    text = _edited(message, [(own, str(number)), (token, str(number))])
    return one_line(text), Own(message.text_of(own), None if token is None else message.text_of(token))


def answered(message: Message, own: Own) -> str:
    """An answer under the client's id; a result that names its subscription names the client's."""
    result = message.members.get("result")
    subscription = inner(message.text, inner(message.text, result, META), SUBSCRIPTION)
    return _edited(message, [(message.members["id"], own.id_text), (subscription, own.id_text)])


def _named(message: Message) -> Member | None:
    """Where a notification of the server says which request it is about."""
    match message.method:
        case "notifications/progress":
            return message.params.get(TOKEN)
        case "notifications/cancelled":
            return message.params.get("requestId")
        case _:
            return inner(message.text, message.params.get(META), SUBSCRIPTION)


def reported(message: Message, own: Own) -> str:
    """A notification about a request, in the client's words: its progress token, its subscription, its id."""
    name = own.id_text if own.token is None or message.method != "notifications/progress" else own.token
    return _edited(message, [(_named(message), name)])


def cancelled(message: Message, number: int) -> bytes:
    """A cancellation that a client sent, as a line that names the request as the server knows it."""
    return one_line(_edited(message, [(message.params.get("requestId"), str(number))]))


def about(message: Message) -> int | None:
    """Which of a bridge's numbers a notification of the server speaks of; None where it names none."""
    member = _named(message)
    match None if member is None else member.value:
        case bool():
            return None
        case int() as number:
            return number
        case str() as text if text.isdecimal() and len(text) < 20:  # some servers make text of a subscription's id
            return int(text)
        case _:
            return None
