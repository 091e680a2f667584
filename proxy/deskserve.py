"""The process of an operator's desk: its socket, who may speak there, and the terminal that shows what waits.

Refuses to know which answer counts. A desk shows its codes to a terminal alone, never to a file or a pipe.
"""

import ctypes
import os
import secrets
import selectors
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from proxy.desk import ALPHABET, CODE, Desk
from proxy.deskline import DeskError, open_folder, socket_path
from proxy.deskwords import Lines, Said, WordsError, text_of, write
from proxy.kin import Lineage, Peer, is_inside, lineage, peer_of
from proxy.spanfile import make_folder

_LOOK = 0.5
"""Seconds after which a signal is seen that came between Python's last look for one and the wait for the next word."""
_CHUNK = 64 * 1024
_PATIENCE = 2.0
_PR_SET_DUMPABLE = 4


@dataclass(slots=True)
class _Speaker:
    """Somebody who is connected. `holds`: it is a proxy, which says what waits and never answers."""

    line: socket.socket
    peer: Peer
    lineage: Lineage
    lines: Lines = field(default_factory=Lines)
    holds: bool = False


def listen(folder: str) -> socket.socket:
    """The socket of a desk in its folder, which is made where it is missing. Raises DeskError."""
    try:
        make_folder(os.path.abspath(folder))
    except OSError as error:
        raise DeskError(f"{folder}: {error.strerror}") from None
    place = open_folder(folder)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        path = socket_path(place)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other, suppress(OSError):
            other.connect(path)
            raise DeskError(f"{folder}: another desk listens there")
        with suppress(FileNotFoundError):
            os.unlink(path)  # of a desk that was killed
        made.bind(path)
        made.listen(64)
    except OSError as error:
        made.close()
        raise DeskError(f"{folder}: cannot listen there: {error.strerror}") from None
    except DeskError:
        made.close()
        raise
    finally:
        os.umask(before)
        os.close(place)
    return made


def new_code() -> str:
    """A code that nobody can guess."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE))


def keep_private() -> None:
    """Have no other process of our user look into our memory (prctl(2), PR_SET_DUMPABLE), where the codes are."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


class DeskServer:
    """A desk behind a listening socket; `show` takes the lines for the operator."""

    def __init__(self, listening: socket.socket, show: Callable[[list[str]], None]) -> None:
        self.desk = Desk(new_code)
        self._show = show
        self._listening = listening
        self._own = lineage(os.getpid())
        self._speakers: dict[int, _Speaker] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until somebody interrupts us."""
        while True:
            self.turn(_LOOK)

    def turn(self, seconds: float | None) -> None:
        """Take what has come, after waiting at most so long for it."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listening:
                self._accept()
            elif (speaker := self._speakers.get(key.fd)) is not None:
                self._hear(speaker)

    def _accept(self) -> None:
        line, _ = self._listening.accept()
        try:
            peer = peer_of(line)
        except OSError:
            line.close()
            return
        if peer.uid != os.geteuid():
            line.close()
            return
        line.settimeout(_PATIENCE)
        self._speakers[line.fileno()] = _Speaker(line, peer, lineage(peer.pid))
        self._selector.register(line, selectors.EVENT_READ)

    def _hear(self, speaker: _Speaker) -> None:
        try:
            data = speaker.line.recv(_CHUNK)
            heard = speaker.lines.feed(data)
        except (OSError, WordsError):
            data, heard = b"", []
        for said in heard:
            self._take(speaker, said)
        if not data:
            self._leave(speaker)

    def _leave(self, speaker: _Speaker) -> None:
        number = speaker.line.fileno()
        if number < 0:
            return
        self._selector.unregister(speaker.line)
        del self._speakers[number]
        speaker.line.close()
        self._show(self.desk.lost(number))

    def _take(self, speaker: _Speaker, said: Said) -> None:
        number = speaker.line.fileno()
        if number < 0:
            return
        if "hold" in said or "over" in said:
            speaker.holds = True
            shown = self.desk.hold(number, said) if "hold" in said else self.desk.over(number, text_of(said, "over"))
            self._show(shown)
            return
        self._say(speaker, self._answer(speaker, said))

    def _answer(self, speaker: _Speaker, said: Said) -> Said:
        proxies = [one for one in self._speakers.values() if one.holds]
        if speaker.holds or any(is_inside(speaker.lineage, one.lineage, self._own) for one in proxies):
            self._show([f"refused  process {speaker.peer.pid}, which comes from where a proxy does: not the operator"])
            return {"error": "who was started from where the agent was cannot answer; use a terminal of its own"}
        if said.get("list") is True:
            return {"pending": list(self.desk.pending())}
        reply = self.desk.answer(text_of(said, "answer"), text_of(said, "id"), text_of(said, "code"))
        self._show([f"answer   {reply.text}"])
        source = self._speakers.get(reply.source)
        if reply.order is not None and source is not None:
            self._say(source, reply.order)
        return {"done" if reply.taken else "error": reply.text}

    def _say(self, speaker: _Speaker, said: Said) -> None:
        try:
            speaker.line.sendall(write(said))
        except OSError:
            self._leave(speaker)

    def close(self, folder: str) -> None:
        """End; what waits is refused in time by the proxies that hold it."""
        for speaker in list(self._speakers.values()):
            speaker.line.close()
        self._selector.close()
        self._listening.close()
        with suppress(OSError, DeskError):
            place = open_folder(folder)
            os.unlink(socket_path(place))
            os.close(place)


def show_on_terminal(lines: list[str]) -> None:
    """Show lines to the operator."""
    if lines:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
