"""A folder that no path leads out of: every step is taken by a directory's descriptor, and no link is followed.

A check and the use after it are one system call on one descriptor, so a link that is planted between them is refused
as one that was there before. Does not know tools, journals and which files are wanted.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from servers.fixture import PlaceError, ToolError

MOST_BYTES = 1 << 20
"""What one read or write may hold."""
LONGEST_NAME = 255
LONGEST_PATH = 1024
"""Bytes in UTF-8, of one part and of the whole."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK the open of a named pipe waits for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderError(PlaceError):
    """A folder that cannot be made or opened; the message names it and says what to do."""


def split_path(path: str) -> tuple[str, ...]:
    """The parts of a path inside the folder. Raises ToolError for every spelling but the plain relative one.

    There is one spelling for each file, so that a policy's glob over paths cannot be passed by another.
    """
    shown = f"{path[:80]!a}{'…' if len(path) > 80 else ''}"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        raise ToolError(f"path {shown} has a control character")
    if path.startswith("/"):
        raise ToolError(f"path {shown} is absolute; give it relative to the folder, as notes/today.md")
    parts = tuple(path.split("/"))
    if not {"", ".", ".."}.isdisjoint(parts):
        raise ToolError(f"path {shown} has an empty part, '.' or '..'; write it plainly, as notes/today.md")
    if any(len(part.encode()) > LONGEST_NAME for part in parts) or len(path.encode()) > LONGEST_PATH:
        raise ToolError(f"path {shown} is too long: {LONGEST_NAME} bytes a part, {LONGEST_PATH} in all")
    return parts


class Folder:
    """An open folder; close it. Its methods raise ToolError with one sentence, and never OSError."""

    def __init__(self, root: Path) -> None:
        """Open the folder at `root`, whose own path may lead through links. Raises FolderError."""
        try:
            whole = root.resolve(strict=True)
            self._root = os.open(whole, _FOLDER)
        except (OSError, RuntimeError) as error:
            raise FolderError(f"{root}: cannot be opened: {error}") from error
        self._draft_stem = whole.with_name(f"{whole.name}.{os.getpid()}")

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._root)

    def names(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every entry below the folder that is no folder, with its stat; names that are not UTF-8 have surrogates."""
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            parts = waiting.pop()
            with _told("the folder"), self._open_folder(parts) as folder, os.scandir(folder) as entries:
                found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
            for name, status in found:
                if stat.S_ISDIR(status.st_mode):
                    waiting.append((*parts, name))
                else:
                    yield "/".join((*parts, name)), status

    def status(self, path: str) -> os.stat_result | None:
        """The stat of what has this path, not followed; None where nothing is, or a part on the way is no folder."""
        *folders, name = split_path(path)
        with _told(path):
            try:
                with self._open_folder(tuple(folders)) as folder:
                    return os.stat(name, dir_fd=folder, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                return None

    @contextmanager
    def open_file(self, parts: tuple[str, ...]) -> Iterator[int]:
        """A descriptor that reads a regular file. Raises ToolError for whatever else is there."""
        *folders, name = parts
        path = "/".join(parts)
        with _told(path), self._open_folder(tuple(folders)) as folder:
            file = os.open(name, _FILE, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise ToolError(f"{path[:80]!a} is no file")
                yield file
            finally:
                os.close(file)

    def read_link(self, parts: tuple[str, ...]) -> bytes:
        """What a symbolic link says, which is not followed."""
        *folders, name = parts
        with _told("/".join(parts)), self._open_folder(tuple(folders)) as folder:
            return os.readlink(os.fsencode(name), dir_fd=folder)

    def read(self, path: str) -> bytes:
        """The bytes of a file of at most MOST_BYTES."""
        with self.open_file(split_path(path)) as file, os.fdopen(file, "rb", closefd=False) as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ToolError(f"{path[:80]!a} has more than {MOST_BYTES} bytes")
        return data

    def write(self, path: str, data: bytes) -> bool:
        """Put a file in place, whole or not at all, and the folders above it; True when there was none before.

        A file that is there is replaced by name, so that another name of the same file (a hard link) keeps its bytes.
        """
        *folders, name = split_path(path)
        if len(data) > MOST_BYTES:
            raise ToolError(f"content has more than {MOST_BYTES} bytes")
        draft = self._draft_stem.with_name(f"{self._draft_stem.name}.{secrets.token_hex(8)}.new")
        try:
            with _told(path):
                _write_new(draft, data)
                with self._open_folder(tuple(folders), make=True) as folder:
                    created = not _is_file(folder, name, path)
                    os.rename(draft, name, dst_dir_fd=folder)
            return created
        except BaseException:
            self._prune(tuple(folders))
            raise
        finally:
            draft.unlink(missing_ok=True)

    def delete(self, path: str) -> None:
        """Take a file away, and the folders above it that are empty then: a folder is there by its files."""
        *folders, name = split_path(path)
        with _told(path), self._open_folder(tuple(folders)) as folder:
            if not _is_file(folder, name, path):
                raise FileNotFoundError(errno.ENOENT, path)
            os.unlink(name, dir_fd=folder)
        self._prune(tuple(folders))

    @contextmanager
    def _open_folder(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        folder = os.dup(self._root)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _prune(self, parts: tuple[str, ...]) -> None:
        while parts:
            *above, name = parts
            parts = tuple(above)
            with suppress(OSError), self._open_folder(parts) as folder:
                os.rmdir(name, dir_fd=folder)


def _write_new(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as stream:
        stream.write(data)


def _is_file(folder: int, name: str, path: str) -> bool:
    """Whether a regular file has that name; False for nothing. Raises ToolError for anything else."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{path[:80]!a} is no file")
    return True


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Make a sentence for the caller of what the system says."""
    try:
        yield
    except OSError as error:
        match error.errno:
            case errno.ENOENT:
                said = "there is no such file"
            case errno.ELOOP | errno.ENOTDIR:
                said = "a link or a file is in the way, and links are not followed"
            case errno.EISDIR:
                said = "is a folder"
            case _:
                said = error.strerror or "cannot be used"
        raise ToolError(f"{path[:80]!a}: {said}") from error
