"""The two pumps of a stdio connection, and the outlets that they share.

Refuses to know processes and signals: it is given file descriptors and a relay.
"""

import os
from collections import deque
from collections.abc import Callable
from select import POLLIN, POLLOUT, poll
from threading import Condition, Lock, Thread, Timer

from proxy.relay import Passage, Relay
from proxy.settling import Settler

CHUNK = 64 * 1024


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, however often it takes."""
    done = 0
    while done < len(data):
        try:
            done += os.write(fd, memoryview(data)[done:] if done else data)
        except BlockingIOError:  # whoever shares the pipe with us has made it so
            _wait(fd, POLLOUT)


def _wait(fd: int, event: int) -> None:
    waiting = poll()
    waiting.register(fd, event)
    waiting.poll()


class Outlet:
    """One end that both pumps write to: the flow of one direction, and whole lines of ours in between (wire rule 12).

    Lines of ours are written by a thread of their own, started for the first one: the pump that has them must not wait
    for a peer that does not read. `gone` is set when the peer has closed its end.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.gone = False
        self._writing = Lock()
        self._turn = Condition()
        self._mid_line = False
        self._ended = False
        self._lines: deque[bytes] = deque()
        self._poster: Thread | None = None
        self._timers: list[Timer] = []

    def send(self, data: bytes, *, mid_line: bool) -> None:
        """Write a piece of the flow, which ends inside a line or not."""
        if not data and self._mid_line == mid_line:
            return
        with self._writing:
            self._write(data)
            self._mid_line = mid_line
        if self._poster is not None:
            with self._turn:
                self._turn.notify_all()

    def post(self, lines: bytes) -> None:
        """Have whole lines of ours written as soon as the flow is between two lines."""
        with self._turn:
            self._lines.append(lines)
            if self._poster is None:
                self._poster = Thread(target=self._post, name="post", daemon=True)
                self._poster.start()
            self._turn.notify_all()

    def post_later(self, seconds: float, lines: bytes) -> None:
        """The same, when some seconds are over."""
        timer = Timer(seconds, self.post, (lines,))
        timer.daemon = True
        self._timers = [one for one in self._timers if one.is_alive()] + [timer]
        timer.start()

    def end(self) -> None:
        """Nothing more flows: write what is still posted, also what is due later, and close.

        A line that the flow left unterminated is ended only where a line of ours must follow it.
        """
        for timer in self._timers:
            if self.gone:
                timer.cancel()
            timer.join()
        with self._turn:
            self._ended = True
            self._turn.notify_all()
            poster = self._poster
        if poster is not None:
            poster.join()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _post(self) -> None:
        while True:
            with self._turn:
                while (self._mid_line or not self._lines) and not self._ended:
                    self._turn.wait()
                if not self._lines:
                    return
            with self._writing:
                if self._mid_line and not self._ended:
                    continue  # a line has begun to flow meanwhile
                lines = self._lines.popleft()
                self._write(b"\n" + lines if self._mid_line else lines)
                self._mid_line = False

    def _write(self, data: bytes) -> None:
        try:
            if data and not self.gone:
                write_all(self.fd, data)
        except OSError:
            self.gone = True


class Pumps:
    """Client to server and back. `closed` is told which side ended first: client_ended or server_ended."""

    def __init__(
        self, relay: Relay, client: tuple[int, int], server: tuple[int, int], ended: Callable[[str], None]
    ) -> None:
        """`client` and `server` are each a descriptor to read and one to write; `ended` is called when a side ends."""
        self.relay = relay
        self.from_client, self.from_server = client[0], server[0]
        self.to_client, self.to_server = Outlet(client[1]), Outlet(server[1])
        self.ended = ended
        self.upward = Thread(target=self._pump_client, name="client", daemon=True)
        self.downward = Thread(target=self._pump_server, name="server", daemon=True)

    def start(self) -> None:
        """Start both pumps."""
        self._settler = Settler(self.relay.settle)
        self.downward.start()
        self.upward.start()

    def deliver(self, passage: Passage) -> None:
        """Send whole lines that no pump has read: what became of a call that waited."""
        if passage.to_server:
            self.to_server.post(passage.to_server)
        if passage.to_client:
            self.to_client.post(passage.to_client)

    def _client_passage(self, passage: Passage) -> None:
        if passage.to_client:
            self.to_client.post(passage.to_client)
        self.to_server.send(passage.to_server, mid_line=passage.mid_line)
        self.relay.settle_due()

    def _server_passage(self, passage: Passage) -> None:
        if passage.to_server:
            self.to_server.post(passage.to_server)
        # Before it is sent: a client that does not read must not keep off the record what it has been answered.
        self._settler.note()
        self.to_client.send(passage.to_client, mid_line=passage.mid_line)
        for seconds, lines in passage.later:
            self.to_client.post_later(seconds, lines)
        self.relay.settle_due()

    def _pump_client(self) -> None:
        while not self.to_server.gone:
            chunk = _read(self.from_client)
            if passed := self.relay.passes("client", chunk):
                self.to_server.send(chunk[:passed], mid_line=False)
                if passed == len(chunk):
                    continue
                chunk = chunk[passed:]
            if not chunk:
                self._client_passage(self.relay.client_ended())
                break
            self._client_passage(self.relay.from_client(chunk))
        self.ended("client_ended" if not self.to_server.gone else "server_ended")
        if self.to_server.gone:
            os.close(self.from_client)  # so that the client's next write fails, as it would directly
        self.to_server.end()

    def _pump_server(self) -> None:
        while not self.to_client.gone:
            chunk = _read(self.from_server)
            if passed := self.relay.passes("server", chunk):
                self._settler.note()
                self.to_client.send(chunk[:passed], mid_line=False)
                self.relay.settle_due()
                if passed == len(chunk):
                    continue
                chunk = chunk[passed:]
            if not chunk:
                self._server_passage(self.relay.server_ended())
                break
            self._server_passage(self.relay.from_server(chunk))
        self._settler.end()
        self.ended("server_ended" if not self.to_client.gone else "client_ended")
        os.close(self.from_server)  # so that the server's next write fails, as it would directly
        self.to_client.end()


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            _wait(fd, POLLIN)
        except OSError:
            return b""
