"""The span file of one connection: append only, one span a line, one write(2) a span (record.md section 2).

Refuses to know what a span says, and how one is read.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock

FRESH = 1_000_000
"""Nanoseconds for which a close look at the file holds: what took its place meanwhile may be found so much later."""

Tap = Callable[[str | bytes], None]
"""Is given every line that was written; it must neither block nor raise."""


class SpanFileError(ValueError):
    """A span that could not be recorded: which folder or file, why, and what to do."""


def make_folder(folder: str) -> None:
    """Make `folder` and what is missing above it, 0700 each; one that is there stays as it is. Raises OSError."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    if parent and parent != folder:
        make_folder(parent)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        # Proxies of one run start at once; whoever comes second finds the folder made.
        if not os.path.isdir(folder):
            raise


def _joined(lines: Sequence[str | bytes | bytearray]) -> bytes | bytearray:
    if len(lines) == 1 and isinstance(lines[0], bytearray):
        only = lines[0]
        only += b"\n"  # a large line is not copied for it
        return only
    return b"".join([(line.encode() if isinstance(line, str) else line) + b"\n" for line in lines])


class SpanFile:
    """An open span file. `recorded` and `dropped` count appended lines; `broken` is true once a write has failed.

    Both pumps of a proxy may append at once. A broken file takes nothing more, so that its torn line stays the last.
    """

    __slots__ = ("_fd", "_identity", "_lock", "_looked", "_size", "broken", "dropped", "path", "recorded", "tap")

    def __init__(self, path: str, fd: int) -> None:
        # Absolute: nobody's change of folder may make it another file.
        self.path = os.path.abspath(path)
        self.recorded = 0
        self.dropped = 0
        self.broken = False
        self.tap: Tap | None = None
        self._fd = fd
        opened = os.fstat(fd)
        self._identity = (opened.st_dev, opened.st_ino)
        self._size = opened.st_size
        self._looked = -FRESH
        # Re-entrant: a signal handler may record while the main thread is inside `append`.
        self._lock = RLock()

    @classmethod
    def create(cls, folder: "str | os.PathLike[str]", server_id: str) -> "SpanFile":
        """Make `<server>.<pid>.<8 random hex>.jsonl` in `folder`, exclusively, 0600. Raises SpanFileError."""
        if not server_id or "/" in server_id or "\0" in server_id:
            raise SpanFileError(f"{server_id!r} is no server id: it names the span file and matches [A-Za-z0-9._-]+")
        return cls.create_named(folder, f"{server_id}.{os.getpid()}.{os.urandom(4).hex()}.jsonl")

    @classmethod
    def create_named(cls, folder: "str | os.PathLike[str]", name: str) -> "SpanFile":
        """The same with a name of the caller's, as `run.jsonl` of the harness."""
        place = os.fspath(folder)
        path = os.path.join(place, name)
        try:
            make_folder(place)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except (OSError, ValueError) as error:
            raise SpanFileError(
                f"the span folder {place} cannot be written: {name}: {error}; name another with --spans"
            ) from error
        return cls(path, fd)

    def append(self, line: str | bytes, moment: int | None = None) -> None:
        """Write one line (a span as JSON, no newline in it); it is on the file when this returns, without an fsync.

        Raises SpanFileError when the write fails or is short, and at once for ever after. With the `moment` that it is
        (ns of some clock) the file is looked at less closely where that was done less than FRESH ago.
        """
        data = (line.encode() if isinstance(line, str) else line) + b"\n"
        with self._lock:
            self._write(data, 1, moment, checked=True)
            if self.tap is not None:
                self.tap(line)

    def append_all(self, lines: Sequence[str | bytes | bytearray], *, checked: bool = True) -> None:
        """Write several lines with one write(2). When it raises, none of them counts as recorded.

        `checked`: look first whether what was written before is still there; without it the next checked write finds
        that out. Lines that are not checked tell of what has happened, and stay as far as they were written.
        """
        if not lines:
            return
        data = _joined(lines)
        with self._lock:
            self._write(data, len(lines), None, checked=checked)
            if self.tap is not None:
                for line in lines:
                    self.tap(bytes(line) if isinstance(line, bytearray) else line)

    def _write(self, data: bytes | bytearray, count: int, moment: int | None, *, checked: bool) -> None:
        """Write the text of so many lines."""
        if self.broken or self._fd < 0:
            self.dropped += count
            raise SpanFileError(f"{self.path}: {'an earlier write failed' if self.broken else 'the file is closed'}")
        try:
            if checked and not self._still_there(moment):
                self._check()
            written = os.write(self._fd, data)
            if written != len(data):
                if checked:
                    self._tear(data, written)
                raise OSError(f"short write, {written} of {len(data)} bytes")
        except (OSError, ValueError) as error:
            self.broken = True
            self.dropped += count
            raise SpanFileError(f"{self.path}: {error}; nothing more is recorded here") from error
        self.recorded += count
        self._size += written

    def _tear(self, data: bytes | bytearray, written: int) -> None:
        """Leave of lines that were written in part no more than a torn beginning of the first one.

        None of what they say goes on, so a whole one among them would tell of a call that never was.
        """
        torn = min(written, data.find(b"\n") // 2)
        # What cannot be cut, as a pipe, is left as it is.
        with suppress(OSError):
            os.ftruncate(self._fd, self._size + torn)

    def _still_there(self, moment: int | None) -> bool:
        """Whether a close look can wait; that the file is where it was and as long as it was is seen without one."""
        if moment is None:
            return False
        if moment - self._looked >= FRESH:
            self._looked = moment
            return False
        return os.access(self.path, os.F_OK) and os.lseek(self._fd, 0, os.SEEK_END) == self._size

    def _check(self) -> None:
        """Raise OSError when what was written is no longer there: somebody moved, removed, cut or wrote to the file."""
        there = os.stat(self.path)
        if (there.st_dev, there.st_ino) != self._identity:
            raise OSError("another file stands in its place")
        if there.st_size != self._size:
            raise OSError(f"it has {there.st_size} bytes where {self._size} were written")

    def close(self) -> None:
        """Close the file; a second time does nothing. Raises SpanFileError when the system reports a late failure."""
        with self._lock:
            fd, self._fd = self._fd, -1
            if fd < 0:
                return
            try:
                os.close(fd)
            except OSError as error:
                self.broken = True
                raise SpanFileError(f"{self.path}: {error}") from error
