"""The way to an operator's desk: a Unix socket in a folder that is the operator's alone.

Refuses to know what is said there. Who owns the folder is trusted; nobody else is connected to.
"""

import os
import socket
import stat

from proxy.deskwords import SOCKET, Lines, Said, WordsError, write
from proxy.kin import Process, lineage, peer_of

PATIENCE = 2.0
"""Seconds that the other side has to take what is said."""
_CHUNK = 64 * 1024


class DeskError(ValueError):
    """A desk that cannot be reached or trusted: which folder, and why."""


def open_folder(folder: str) -> int:
    """A descriptor of a desk's folder, which must be ours and nobody else's to enter. Raises DeskError."""
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise DeskError(f"{folder}: {error.strerror}; `wiretrap approve listen {folder}` makes it") from None
    there = os.fstat(place)
    if there.st_uid != os.geteuid() or stat.S_IMODE(there.st_mode) & 0o077:
        os.close(place)
        raise DeskError(f"{folder}: a folder of approvals belongs to its user and has the mode 0700")
    return place


def socket_path(place: int) -> str:
    """The socket's path by its folder's descriptor: the path of a socket may have about a hundred bytes only."""
    return f"/proc/self/fd/{place}/{SOCKET}"


class DeskLine:
    """One connection to the desk in a folder. `parent`: who started us, whose own desk is none."""

    def __init__(self, folder: str, parent: Process | None = None) -> None:
        # Absolute: nobody's change of folder may make it another one.
        self.folder = os.path.abspath(folder)
        self._parent = parent
        self._lines = Lines()
        self._socket: socket.socket | None = None

    @property
    def socket(self) -> socket.socket | None:
        """The open connection, None where there is none."""
        return self._socket

    def connect(self) -> None:
        """Connect, unless we are. Raises DeskError."""
        if self._socket is not None:
            return
        place = open_folder(self.folder)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(PATIENCE)
            made.connect(socket_path(place))
            peer = peer_of(made)
            if peer.uid != os.geteuid():
                raise DeskError(f"{self.folder}: who listens there is another user")
            above = lineage(peer.pid)
            if self._parent is not None and (not above or self._parent in above):
                raise DeskError(f"{self.folder}: who listens there was started by the client that is to be watched")
        except OSError as error:
            made.close()
            raise DeskError(f"{self.folder}: nobody listens there: {error.strerror or error}") from None
        except DeskError:
            made.close()
            raise
        finally:
            os.close(place)
        self._socket, self._lines = made, Lines()

    def say(self, said: Said) -> None:
        """Send a message. Raises DeskError, and then the connection is over."""
        if self._socket is None:
            raise DeskError(f"{self.folder}: nobody listens there")
        try:
            self._socket.sendall(write(said))
        except OSError as error:
            self.close()
            raise DeskError(f"{self.folder}: who listened there is gone: {error.strerror or error}") from None

    def hear(self) -> list[Said]:
        """What was said since, after waiting for some of it. Raises DeskError where the connection is over."""
        if self._socket is None:
            raise DeskError(f"{self.folder}: nobody listens there")
        try:
            data = self._socket.recv(_CHUNK)
            if data:
                return self._lines.feed(data)
        except (OSError, WordsError):
            pass
        self.close()
        raise DeskError(f"{self.folder}: who listened there is gone")

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def ask_desk(folder: str, said: Said) -> Said:
    """Say one thing to a desk, and hear what it answers. Raises DeskError."""
    line = DeskLine(folder)
    line.connect()
    try:
        line.say(said)
        while True:
            for heard in line.hear():
                return heard
    finally:
        line.close()
