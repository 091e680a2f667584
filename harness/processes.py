"""Ends every process that a trial left behind, by its id, also those that went into sessions of their own.

Refuses to know agents, servers and trials. Linux only: it needs /proc, process descriptors and a child subreaper.
"""

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL: longer than the proxy's own two."""
LAST_RESORT = 10.0
"""Seconds during which SIGKILL is sent again, for a process that forks faster than it can be listed."""
PACE = 0.1
"""Seconds after which /proc is read again, since a new grandchild wakes nobody."""
_WALL = 0x40000000
"""Of waitid(2): children of any kind, also those whose end sends no SIGCHLD."""


class ProcessError(ValueError):
    """Processes that could not be ended, with their ids."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process, told from a later one of the same id by its start time (clock ticks since boot)."""

    pid: int
    parent: int
    started: int
    zombie: bool = False


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise ProcessError(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")


def become_subreaper() -> None:
    """Make orphans below this process its children, so that none escapes by leaving its parent."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def keep_private() -> None:
    """Close this process's memory and descriptors to other processes of the same user (prctl(2), PR_SET_DUMPABLE).

    Without it whoever is started by us can write into our pipes through /proc. A program that is executed later is
    open again; one that may trace any process is not held back.
    """
    _prctl(PR_SET_DUMPABLE, 0)


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return None
    # The name stands in brackets and may hold brackets and blanks itself: proc_pid_stat(5).
    fields = stat[stat.rindex(")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[19]), fields[0] in "ZX")


def descendants(root: int, spare: Collection[Process] = ()) -> tuple[Process, ...]:
    """Every process below `root`, zombies too, without those in `spare` and what is below them."""
    if root == os.getpid() and not _has_children():
        return ()
    spared = {(process.pid, process.started) for process in spare}
    children: dict[int, list[Process]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (process := _read(int(entry))) is not None:
            children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        below = [process for process in children.pop(waiting.pop(), []) if (process.pid, process.started) not in spared]
        found += below
        waiting += [process.pid for process in below]
    return tuple(found)


def _has_children() -> bool:
    """Whether this process has any child, by any of its threads, that lives or was not waited for. Takes none."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WALL)
    except ChildProcessError:
        return False
    return True


def find_process(pid: int) -> Process:
    """The process of this id. Raises ProcessError when it is gone."""
    process = _read(pid)
    if process is None:
        raise ProcessError(f"process {pid} is gone")
    return process


def command_line(pid: int) -> tuple[str, ...]:
    """The arguments that a process was started with; empty when it is gone."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(part) for part in text.split(b"\0")[:-1])


@contextmanager
def _descriptors(processes: Collection[Process]) -> Iterator[dict[int, Process]]:
    """Process descriptors that are sure to be of these processes and of no later one with the same id."""
    with ExitStack() as stack:
        opened: dict[int, Process] = {}
        for process in processes:
            with suppress(OSError):
                descriptor = os.pidfd_open(process.pid)
                stack.callback(os.close, descriptor)
                now = _read(process.pid)
                if now is not None and now.started == process.started:
                    opened[descriptor] = process
        yield opened


def _reap(processes: Collection[Process]) -> None:
    for process in processes:
        if process.zombie and process.parent == os.getpid():
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _living(root: int, spare: Collection[Process]) -> tuple[Process, ...]:
    found = descendants(root, spare)
    _reap(found)
    return tuple(process for process in found if not process.zombie)


def _sheltered(living: Collection[Process], shelter: Callable[[Process], bool]) -> frozenset[int]:
    """The ids of those that `shelter` names and of all below them; `living` has parents before children."""
    found: set[int] = set()
    for process in living:
        if process.parent in found or shelter(process):
            found.add(process.pid)
    return frozenset(found)


def end_descendants(
    root: int,
    *,
    spare: Collection[Process] = (),
    patience: float = 0.0,
    shelter: Callable[[Process], bool] = lambda _: False,
    grace: float = GRACE,
) -> tuple[int, ...]:
    """End everything below `root`, and reap what is our own child; `spare` and what is below those stay. Blocks.

    What `shelter` names, and what is below those, has `patience` seconds to end by itself once the others got their
    SIGTERM; then all get it, and `grace` seconds later SIGKILL. Returns the ids of those that a signal was sent to.
    Wait for your own Popen objects first: their exit codes are taken here. Raises ProcessError.
    """
    signalled: dict[int, int] = {}

    def stage(seconds: float, send: signal.Signals, shelter: Callable[[Process], bool] | None = None) -> bool:
        """Send to all but the sheltered, until none is left, or none of the sheltered where there is a shelter."""
        deadline = time.monotonic() + seconds
        while True:
            living = _living(root, spare)
            sheltered = frozenset() if shelter is None else _sheltered(living, shelter)
            if not (living if shelter is None else sheltered):
                return True
            with _descriptors(living) as descriptors:
                for descriptor, process in descriptors.items():
                    again = send is signal.SIGKILL or signalled.get(process.pid) != process.started
                    if process.pid not in sheltered and again:
                        signalled[process.pid] = process.started
                        with suppress(ProcessLookupError, PermissionError):
                            signal.pidfd_send_signal(descriptor, send)
                if time.monotonic() >= deadline:
                    return False
                poll = select.poll()
                for descriptor in descriptors:
                    poll.register(descriptor, select.POLLIN)
                poll.poll(min(PACE, max(0.0, deadline - time.monotonic())) * 1000)

    stage(patience, signal.SIGTERM, shelter)
    if not stage(grace, signal.SIGTERM) and not stage(LAST_RESORT, signal.SIGKILL):
        left = ", ".join(str(process.pid) for process in _living(root, spare))
        if left:
            raise ProcessError(f"processes {left} are still alive {LAST_RESORT:.0f} s after SIGKILL; end them by hand")
    return tuple(signalled)
