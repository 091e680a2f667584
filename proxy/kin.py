"""Which processes began which, as /proc tells it, and who is at the other end of a Unix socket (Linux).

Refuses to know what they do. A process that lets its parent end first leaves its tree: another user is the real fence.
"""

import os
import socket
import struct
from typing import NamedTuple, TypeAlias

Process: TypeAlias = tuple[int, int]
"""A pid and the moment of its start, in clock ticks since the boot: pids are given out again."""
Lineage: TypeAlias = tuple[Process, ...]
"""A process, its parent, and so on up."""
_DEEPEST = 256


class Peer(NamedTuple):
    """Who is at the other end of a socket."""

    pid: int
    uid: int


def peer_of(connection: socket.socket) -> Peer:
    """Who connected, or who listens, as the kernel noted it then. Raises OSError."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", told)
    return Peer(pid, uid)


def lineage(pid: int) -> Lineage:
    """The process and those that it comes from, without the first of the system; short where one cannot be read."""
    found: list[Process] = []
    while pid > 1 and len(found) < _DEEPEST:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                parent, start = read_stat(file.read())
        except (OSError, ValueError):
            break
        found.append((pid, start))
        pid = parent
    return tuple(found)


def read_stat(text: bytes) -> tuple[int, int]:
    """The parent's pid and the moment of the start of a process (proc(5)). Raises ValueError for anything else."""
    # The name stands in parentheses and may hold anything, parentheses and blanks too.
    fields = text[text.rindex(b")") + 1 :].split()
    if len(fields) < 20:
        raise ValueError("this is no line of /proc/PID/stat")
    return int(fields[1]), int(fields[19])


def is_inside(peer: Lineage, proxy: Lineage, desk: Lineage) -> bool:
    """Whether a process comes from one that a proxy comes from and the desk does not: from the agent's tree.

    Of a process of which nothing is known it is said that it does.
    """
    return not peer or bool(set(proxy).difference(desk).intersection(peer))


def parent() -> Process | None:
    """Who started us; None where that is the first process of the system, or has ended."""
    above = lineage(os.getppid())
    return above[0] if above else None
