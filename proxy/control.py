"""The line between a proxy and who supervises it: reload the policy, tell how you are, end when I do.

Refuses to know what a proxy does. It is a socket that the supervisor hands over, never one that others can reach; a
signal would not do, since SIGHUP ends a proxy (wire rule 11).
"""

import asyncio
import json
import os
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from proxy.spans import JSON

VARIABLE = "WIRETRAP_CONTROL"
"""The variable that has the number of the socket's descriptor."""
ENDED = "supervisor_ended"
"""The close reason of connections where the supervisor let go of the line without a signal."""


class ControlError(ValueError):
    """A line that a proxy cannot be controlled by; the message names the variable."""


@dataclass(frozen=True, slots=True)
class Governed:
    """What can be asked of a proxy.

    `reload` is given the policy file that stands from then on, None for none, and raises ValueError where the old one
    goes on to stand.
    """

    reload: Callable[[str | None], None]
    health: Callable[[], Mapping[str, JSON]]
    stop: Callable[[str], None]


def inherited(environment: "os._Environ[str] | dict[str, str]") -> socket.socket | None:
    """The supervisor's line, None without a supervisor. Raises ControlError."""
    text = environment.get(VARIABLE)
    if text is None:
        return None
    wrong = f"{VARIABLE}={text!r}: this is no socket of ours; `wiretrap up` sets it, and nobody else should"
    if not (text.isascii() and text.isdigit()):
        raise ControlError(wrong)
    number = int(text)
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            raise ControlError(wrong)
        # No server of ours may hold or speak on it.
        os.set_inheritable(number, False)
        return socket.socket(fileno=number)
    except (OSError, OverflowError):
        raise ControlError(wrong) from None


async def obey(line: socket.socket, governed: Governed) -> None:
    """Do what the supervisor says until it lets go of the line; then stop.

    An order and its answer are JSON, a line each, and have the same `number`: one that comes late is not another's.
    """
    reader, writer = await asyncio.open_connection(sock=line)
    try:
        with suppress(OSError):
            while order := await reader.readline():
                writer.write(json.dumps(dict(_done(order, governed))).encode() + b"\n")
                await writer.drain()
    finally:
        writer.close()
    governed.stop(ENDED)


def _done(line: bytes, governed: Governed) -> Mapping[str, JSON]:
    match json.loads(line):
        case {"number": int() as number, "order": order}:
            return {"number": number, "answer": dict(_answer(order, governed))}
        case _:
            return {"number": None, "answer": {"error": "no order"}}


def _answer(order: JSON, governed: Governed) -> Mapping[str, JSON]:
    match order:
        case {"reload": str() | None as path}:
            try:
                governed.reload(path)
            except ValueError as error:
                return {"error": str(error)}
            return {}
        case "health":
            return governed.health()
        case _:
            return {"error": "no such order"}
