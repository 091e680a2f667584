"""A client's configuration on the disk: read, written whole or not at all, kept beside it, and put back.

Refuses to know what stands in it.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from proxy.plainfile import open_plain, read_at_most

LARGEST = 64 * 1024 * 1024
"""Bytes of a configuration; Claude Code keeps much else in its own."""
_MARK = ".wiretrap-"
_END = ".bak"


class ClientFileError(ValueError):
    """A file that cannot be read, written or put back; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class ClientFile:
    """`path` is the file itself, no link to it; `mode` its permissions."""

    path: Path
    data: bytes
    mode: int

    @property
    def text(self) -> str:
        """What it says. Raises ClientFileError where it is not UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            said = "UTF-16" if self.data[:2] in (b"\xff\xfe", b"\xfe\xff") else f"not UTF-8 (byte {error.start + 1})"
            raise ClientFileError(f"{self.path}: the file is {said}; save it as UTF-8") from None

    def backup(self, written: bytes) -> Path:
        """Where its bytes are kept while `written` stands in its place: the name says what that is."""
        return self.path.with_name(f"{self.path.name}{_MARK}{_digest(written)}{_END}")

    def backups(self) -> Iterator[Path]:
        """All that are kept beside it."""
        yield from (self.path.with_name(name) for name in _kept_beside(self.path))

    def replace(self, data: bytes) -> None:
        """Put other bytes in its place, with its permissions, whole or not at all. Raises ClientFileError."""
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            links = self.path.stat().st_nlink
            if links > 1:
                said = f"the file has {links} names (hard links), of which the others would keep what it was"
                raise ClientFileError(f"{self.path}: {said}; make symbolic links of them, or a copy")
            _write(draft, data, self.mode)
            if self.path.read_bytes() != self.data:
                raise ClientFileError(f"{self.path}: the file was changed just now, so it is left alone; try again")
            draft.replace(self.path)
        except OSError as error:
            raise ClientFileError(f"{self.path}: the file cannot be written: {error.strerror}") from None
        finally:
            draft.unlink(missing_ok=True)


def read_client_file(path: Path) -> ClientFile:
    """Read a configuration; links are followed. Raises ClientFileError."""
    try:
        real = path.resolve(strict=True)
        with open_plain(real) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            return ClientFile(real, read_at_most(file, LARGEST), mode)
    except (OSError, RuntimeError) as error:
        said = error.strerror if isinstance(error, OSError) else "the links to it go round in a circle"
        kept = ", ".join(_kept_beside(path)) if isinstance(error, FileNotFoundError) else ""
        said = f"{said}; there is a backup of what it was: {kept}" if kept else said
        raise ClientFileError(f"{path}: the file cannot be read: {said}") from None


def _kept_beside(path: Path) -> list[str]:
    """The names of the backups of a file, whether it is there or not."""
    begun = f"{path.name}{_MARK}"
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return []
    return [name for name in names if name.startswith(begun) and name.endswith(_END)]


def write_wrapped(file: ClientFile, data: bytes) -> Path:
    """Put the rewritten bytes in the file's place; where its own are kept. Raises ClientFileError."""
    kept = file.backup(data)
    try:
        # A backup of the same name has the bytes of another time: the file was put back by hand since.
        kept.unlink(missing_ok=True)
        _write(kept, file.data, 0o600)
    except OSError as error:
        raise ClientFileError(f"{kept}: the backup cannot be written: {error.strerror}; nothing was done") from None
    try:
        file.replace(data)
    except ClientFileError:
        kept.unlink(missing_ok=True)
        raise
    return kept


def undo(file: ClientFile) -> bool:
    """Put back, byte for byte, what stood in the file before; false where it was changed since it was rewritten.

    Raises ClientFileError, also where nothing was kept.
    """
    kept = file.backup(file.data)
    if kept.is_file():
        file.replace(read_client_file(kept).data)
        with suppress(OSError):
            kept.unlink()
        return True
    if not any(file.backups()):
        raise ClientFileError(f"{file.path}: there is no backup of it, so there is nothing to undo")
    return False


def kept_texts(file: ClientFile) -> list[str]:
    """What all backups of a file say, the newest first. Raises ClientFileError."""
    found = sorted(file.backups(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return [read_client_file(path).text for path in found]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
        os.fchmod(descriptor, mode)
