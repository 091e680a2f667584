"""All calls of a process that wait for an approval: who is asked, and when it is too late.

Refuses to know the wire: whoever holds a call is told the answer. One thread, started for the first call that waits.
"""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from proxy.deskline import DeskError, DeskLine
from proxy.deskwords import Said, announce, text_of
from proxy.held import SECOND, Answer, Grant, HeldCall, Refused, shown_seconds
from proxy.record import Recorder, Stamp

if TYPE_CHECKING:
    from proxy.grants import Grants

AGAIN = SECOND
"""Nanoseconds between two tries to reach the desk."""


@dataclass(slots=True)
class _Pending:
    held: HeldCall
    said: Said
    answered: Callable[[Answer], None]
    why: str
    """Why no grant of the file let it through, "" where there is no file."""
    told: bool = False


class Waiting:
    """The calls that wait. `grants` were made beforehand; at the desk an operator answers; either may be None."""

    def __init__(self, grants: "Grants | None" = None, desk: DeskLine | None = None) -> None:
        self._grants = grants
        self._desk = desk
        self._lock = Lock()
        self._pending: dict[str, _Pending] = {}
        self._gone: list[str] = []
        self._next_try = 0
        self._unreached = ""
        self._ended = False
        self._thread: Thread | None = None
        self._woken, self._wake = -1, -1

    def ask(self, held: HeldCall, recorder: Recorder, answered: Callable[[Answer], None]) -> None:
        """Have a call approved or refused; `answered` is told once, from here or from another thread."""
        why = ""
        if self._grants is not None:
            taken = self._grants.take(held, Stamp(monotonic_ns(), time_ns()))
            if isinstance(taken, Grant):
                answered(taken)
                return
            why = taken or "no grant of the file fits it"
            if self._desk is None:
                answered(Refused(why))  # the file is read once, so nothing comes of waiting
                return
        with self._lock:
            self._pending[held.id] = _Pending(held, announce(held, recorder), answered, why)
            if self._thread is None:
                self._woken, self._wake = os.pipe()
                self._thread = Thread(target=self._run, name="approvals", daemon=True)
                self._thread.start()
        os.write(self._wake, b"x")

    def forget(self, held: HeldCall) -> None:
        """A call waits no longer, though nobody answered: its client gave it up. Who held it is told so once more."""
        with self._lock:
            pending = self._pending.pop(held.id, None)
            if pending is not None:
                self._gone.append(held.id)
        if pending is not None:
            os.write(self._wake, b"x")
            pending.answered(Refused("the client gave it up", cancelled=True))

    def close(self) -> None:
        """End: nobody is asked any more, and nobody told."""
        with self._lock:
            self._pending.clear()
            self._ended = True
            thread = self._thread
        if thread is not None:
            os.write(self._wake, b"x")
            thread.join()
            os.close(self._woken)
            os.close(self._wake)

    def _run(self) -> None:
        while not self._ended:
            for pending, answer in self._overdue(monotonic_ns()):
                pending.answered(answer)
            self._tell()
            watched = [self._woken]
            desk = None if self._desk is None else self._desk.socket
            if desk is not None:
                watched.append(desk.fileno())
            ready, _, _ = select.select(watched, [], [], self._seconds())
            if self._woken in ready:
                os.read(self._woken, 4096)
            if desk is not None and desk.fileno() in ready:
                self._hear()
        if self._desk is not None:
            self._desk.close()

    def _seconds(self) -> float | None:
        """How long there is nothing to do by itself."""
        now = monotonic_ns()
        with self._lock:
            due = [pending.held.until for pending in self._pending.values()]
            if self._desk is not None and any(not pending.told for pending in self._pending.values()):
                due.append(self._next_try)
        return max(min(due) - now, 0) / SECOND if due else None

    def _overdue(self, now: int) -> list[tuple[_Pending, Answer]]:
        with self._lock:
            late = [pending for pending in self._pending.values() if pending.held.until <= now]
            for pending in late:
                del self._pending[pending.held.id]
                self._gone.append(pending.held.id)
        return [(pending, Refused(self._too_late(pending))) for pending in late]

    def _too_late(self, pending: _Pending) -> str:
        why = f"no approval came within {shown_seconds(pending.held.hold.wait)}"
        if pending.why:
            return f"{why}: {pending.why}"
        if self._desk is None:
            return f"{why}: nobody can be asked"
        return why if pending.told or not self._unreached else f"{why}: {self._unreached}"

    def _tell(self) -> None:
        """Tell the desk what waits, and what waits no longer; where it cannot be reached, later again."""
        with self._lock:
            gone, self._gone = self._gone, []
            waiting = list(self._pending.values())
        desk = self._desk
        if desk is None or (desk.socket is None and (not waiting or monotonic_ns() < self._next_try)):
            return
        try:
            if desk.socket is None:
                self._next_try = monotonic_ns() + AGAIN
                desk.connect()
                for pending in waiting:
                    pending.told = False
            for name in gone:
                desk.say({"over": name})
            for pending in waiting:
                if not pending.told:
                    desk.say(pending.said)
                    pending.told = True
        except DeskError as error:
            self._unreached = str(error)
            for pending in waiting:
                pending.told = False

    def _hear(self) -> None:
        assert self._desk is not None
        try:
            heard = self._desk.hear()
        except DeskError as error:
            self._unreached = str(error)
            with self._lock:
                for pending in self._pending.values():
                    pending.told = False
            return
        for said in heard:
            self._take(said)

    def _take(self, said: Said) -> None:
        name = text_of(said, "grant") or text_of(said, "deny")
        with self._lock:
            pending = self._pending.pop(name, None)
        if pending is None:
            return  # it was refused meanwhile: the grant is void
        with suppress(DeskError):
            if self._desk is not None:
                self._desk.say({"over": name})
        if "grant" not in said:
            pending.answered(Refused(text_of(said, "why") or "the operator denied it"))
            return
        held, wall = pending.held, time_ns()
        lasts = int(held.hold.lasts * SECOND)
        pending.answered(Grant(name, held.one.canonical, held.sha256, "operator", wall + lasts, wall))
