"""Private temporary folders of trials: databases, and the context files with secrets and key. They go with their trial,
and from one that a person asked to keep the secrets go.

Refuses to know what lies in them. Each is locked (flock) by the processes that use it; one that nobody has a lock on
was left by a process that was killed, and whoever starts next takes it away, or the secrets out of it.
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

from harness.hiding import Hiding
from harness.keeping import take_known_secrets_out, take_secrets_out

PRIVATE = "wiretrap-trial-"
"""How the name of a folder begins that goes with its trial."""
KEPT = "wiretrap-kept-"
"""How that of one begins that a person asked to keep."""


@dataclass(frozen=True, slots=True)
class PrivateFolder:
    """A folder, and the descriptor with our lock on it; None for one that somebody else sees to.

    `keep` is what hides the run's secrets, where the folder is to be kept.
    """

    path: Path
    lock: int | None
    keep: Hiding | None = None

    def remove(self) -> None:
        """Take the folder away, or the secrets out of it where it is to be kept."""
        if self.lock is None:
            return
        if self.keep is None:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            take_secrets_out(self.path, self.keep)
        os.close(self.lock)


def make_private_folder(*, keep: Hiding | None = None, where: Path | None = None) -> PrivateFolder:
    """Make a folder for this user alone, in `where` or where temporary files go. Raises OSError."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PRIVATE if keep is None else KEPT, dir=where))
        lock = hold(path)
        if lock is not None:
            return PrivateFolder(path, lock, keep)


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
    """Take away the folders of ours that nobody holds; how many there were. Whatever cannot be read is left alone.

    Of those that are to be kept the secrets are taken out.
    """
    cleared = 0
    with suppress(OSError):
        for entry in list(os.scandir(where or tempfile.gettempdir())):
            if entry.name.startswith((PRIVATE, KEPT)) and _is_ours(entry):
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
        if path.name.startswith(KEPT):
            take_known_secrets_out(path)
            return False
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
