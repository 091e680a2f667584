"""Opens files that somebody else may have put there: regular files only, so that no pipe or device holds a reader up.

Refuses to know what stands in them.
"""

import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

_CHUNK = 1 << 20


def open_plain(path: "str | os.PathLike[str]", *, follow: bool = False) -> BinaryIO:
    """Open a regular file for reading; a link is opened only with `follow`. Raises OSError, never blocks."""
    # Without O_NONBLOCK the open of a named pipe waits for a writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is no regular file", os.fspath(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def lines_of(stream: BinaryIO, longest: int) -> Iterator[bytes]:
    """The lines with their ends, none held longer than `longest` bytes. Raises OSError for one that is."""
    while line := stream.readline(longest + 1):
        if len(line) > longest:
            raise OSError(errno.EFBIG, f"has a line of more than {longest} bytes")
        yield line


def read_at_most(stream: BinaryIO, most: int) -> bytes:
    """What is left of the stream. Raises OSError where that is more than `most` bytes."""
    data = bytearray()
    while chunk := stream.read(min(_CHUNK, most + 1 - len(data))):
        data += chunk
        if len(data) > most:
            raise OSError(errno.EFBIG, f"has more than {most} bytes")
    return bytes(data)
