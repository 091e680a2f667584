"""The server's process: how it starts, so that it dies with us and in our group, and how what it leaves is ended.

Refuses to know what goes through its pipes. Linux whole; elsewhere the parts that need the kernel's help are left out.
"""

import ctypes
import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
HANDLED = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})
"""Signals that the main thread waits for; blocked in every thread of ours, and as before in the child."""


class StartError(ValueError):
    """A command that could not be started; `code` is the exit code that a shell would give."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
"""Loaded before any fork: a loader's lock must not be taken in the child."""


def die_with_parent(parent: int) -> None:
    """In a forked child: have the kernel kill us when the thread that forked us ends, or end at once if it has."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)


class Child(NamedTuple):
    """A started server: its pid, and our ends of the pipes to its stdin and from its stdout."""

    pid: int
    stdin: int
    stdout: int


def start_child(command: Sequence[str], environment: Mapping[str, str]) -> Child:
    """Start the server in our process group, to be killed when we are (wire rule 11). Raises StartError.

    Call it from the main thread before any other thread is started, and keep that thread: the kernel sends the death
    signal when the thread that forked ends (prctl(2)).
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    child_in, stdin = os.pipe()
    stdout, child_out = os.pipe()
    told, tell = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(parent, (child_in, child_out, tell), before, ignored, command, environment)
    for fd in (child_in, child_out, tell):
        os.close(fd)
    problem = os.read(told, 16)
    os.close(told)
    if problem:
        os.waitpid(pid, 0)
        number = int(problem)
        code = 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126
        raise StartError(f"cannot start {command[0]!r}: {os.strerror(number)}", code)
    return Child(pid, stdin, stdout)


def _become(
    parent: int,
    pipes: tuple[int, int, int],
    mask: set[signal.Signals] | set[int],
    ignored: bool,
    command: Sequence[str],
    environment: Mapping[str, str],
) -> None:
    """Turn the forked child into the server; does not return."""
    child_in, child_out, tell = pipes
    try:
        die_with_parent(parent)
        os.dup2(child_in, 0)
        os.dup2(child_out, 1)
        # What Python ignores for itself a server must not inherit.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606  (no shell is what is wanted)
    except OSError as error:
        os.write(tell, str(error.errno or errno.EINVAL).encode())
    except ValueError:
        os.write(tell, str(errno.EINVAL).encode())
    finally:
        os._exit(127)


def server_environment(ours: Mapping[str, str], connection: str) -> dict[str, str]:
    """The server's environment: ours, without what is meant for us, and with the connection's id."""
    environment = {name: value for name, value in ours.items() if not name.startswith("WIRETRAP_")}
    environment["WIRETRAP_CONNECTION"] = connection
    return environment


def send_signal(pid: int, number: int) -> None:
    """Signal a process that may just have ended; not another one that has got its pid since."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if pid in descendants(None):
            signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return
    finally:
        os.close(fd)


def descendants(group: int | None) -> list[int]:
    """Pids of the processes below us in process group `group` (None: any), from /proc; none without /proc."""
    parents: dict[int, int] = {}
    groups: dict[int, int] = {}
    try:
        entries = os.listdir("/proc")
    except OSError:
        return []
    for entry in entries:
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it ended while we looked
        if fields[0] != b"Z":
            parents[int(entry)] = int(fields[1])
            groups[int(entry)] = int(fields[2])
    ours = {os.getpid()}
    found = True
    while found:
        new = {pid for pid, parent in parents.items() if parent in ours and pid not in ours}
        found = bool(new)
        ours |= new
    return [pid for pid in ours if pid != os.getpid() and group in (None, groups[pid])]
