"""What happens to the files of a folder, as the kernel tells it, so that nothing is too quick to be seen.

Linux alone tells; elsewhere nothing is heard here. Refuses to know what the files are.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

# inotify(7)
_MOVED_FROM, _MOVED_TO, _DELETE = 0x40, 0x80, 0x200
_DELETE_SELF, _MOVE_SELF, _OVERFLOW = 0x400, 0x800, 0x4000
_ONLY_A_FOLDER = 0x01000000
_HEAD = struct.Struct("iIII")


class FolderWatch:
    """A watch on a folder, from its making to its close. `problem` says why nothing is heard where it should be."""

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        self.problem = ""
        if sys.platform != "linux":
            return
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            self.problem = os.strerror(ctypes.get_errno())
            return
        mask = _MOVED_FROM | _MOVED_TO | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_A_FOLDER
        if libc.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
            self.problem = os.strerror(ctypes.get_errno())
            os.close(descriptor)
        else:
            self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def gone(self, ending: str) -> tuple[bool, bool]:
        """Since the last time: whether a file whose name ends so was taken away, and whether one was moved in by it.

        The folder itself, and more than the kernel keeps, count as both.
        """
        taken = put = False
        for mask, name in self._events():
            whole = bool(mask & (_DELETE_SELF | _MOVE_SELF | _OVERFLOW))
            fits = name.endswith(ending.encode())
            taken = taken or whole or (fits and bool(mask & (_MOVED_FROM | _DELETE)))
            put = put or whole or (fits and bool(mask & _MOVED_TO))
        return taken, put

    def _events(self) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        data = b""
        with suppress(BlockingIOError):
            while self._descriptor is not None and (more := os.read(self._descriptor, 65536)):
                data += more
        at = 0
        while at < len(data):
            _, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            found.append((mask, data[at : at + length].rstrip(b"\0")))
            at += length
        return found
