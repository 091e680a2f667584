"""Private temporary folders of trials: databases, and the context files with secrets and key. They go with their trial.

Refuses to know what lies in them. Each is locked (flock) by the processes that use it; one that nobody has a lock on
was left by a process that was killed, and whoever starts next takes it away.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PRIVATE = "wiretrap-trial-"
"""How the name of a folder begins that goes with its trial."""
KEPT = "wiretrap-kept-"
"""How that of one begins that a person asked to keep."""


@dataclass(frozen=True, slots=True)
class PrivateFolder:
    """A folder, and the descriptor with our lock on it; None for one that is kept."""

    path: Path
    lock: int | None

    def remove(self) -> None:
        """Take the folder away, unless it is to be kept."""
        if self.lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self.lock)


def make_private_folder(*, keep: bool = False, where: Path | None = None) -> PrivateFolder:
    """Make a folder for this user alone, in `where` or where temporary files go. Raises OSError."""
    if keep:
        return PrivateFolder(Path(tempfile.mkdtemp(prefix=KEPT, dir=where)), None)
    while True:
        path = Path(tempfile.mkdtemp(prefix=PRIVATE, dir=where))
        lock = hold(path)
        if lock is not None:
            return PrivateFolder(path, lock)


@contextmanager
def private_folder(where: Path | None = None) -> Iterator[Path]:
    """The same, taken away at the end."""
    made = make_private_folder(where=where)
    try:
        yield made.path
    finally:
        made.remove()


def hold(path: Path) -> int | None:
    """A descriptor that holds the folder until it is closed; None where somebody is taking the folder away."""
    try:
        lock = _open(path)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        # Between the two it may have been taken away.
        os.stat(path)
    except (BlockingIOError, FileNotFoundError):
        os.close(lock)
        return None
    except OSError:
        os.close(lock)
        raise
    return lock


def clear_stale(where: Path | None = None) -> int:
    """Take away the folders of ours that nobody holds; how many there were. Whatever cannot be read is left alone."""
    cleared = 0
    with suppress(OSError):
        for entry in list(os.scandir(where or tempfile.gettempdir())):
            if entry.name.startswith(PRIVATE) and _is_ours(entry):
                with suppress(OSError):
                    cleared += _clear(Path(entry.path))
    return cleared


def _is_ours(entry: "os.DirEntry[str]") -> bool:
    with suppress(OSError):
        found = entry.stat(follow_symlinks=False)
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return False


def _clear(path: Path) -> bool:
    lock = _open(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
