"""A peer that reads a pipe."""

import os
from threading import Event, Thread

DEADLINE = 60.0


class Reader:
    """A peer that reads one end of a pipe to its end."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.data = bytearray()
        self._grown = Event()
        self._thread = Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while chunk := os.read(self.fd, 65536):
            self.data += chunk
            self._grown.set()
        os.close(self.fd)
        self._grown.set()

    def wait_for(self, size: int) -> bytes:
        while len(self.data) < size:
            assert self._grown.wait(DEADLINE), f"only {bytes(self.data)!r} came"
            self._grown.clear()
        return bytes(self.data)

    def all(self) -> bytes:
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()
        return bytes(self.data)
