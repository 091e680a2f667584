"""The files of a folder as resources: their URIs, one for each file, and back. Knows no MCP and no tools."""

import stat
from collections.abc import Iterator
from urllib.parse import quote, unquote_to_bytes

from servers.fixture import ToolError
from servers.folder import Folder, split_path


class ResourceError(ValueError):
    """A URI that is no file's; the message is one sentence for the caller."""


def listed_files(folder: Folder) -> list[tuple[str, int]]:
    """Path and size in bytes of every regular file that the tools can name, by path. Raises ToolError."""
    return sorted(_files(folder))


def _files(folder: Folder) -> Iterator[tuple[str, int]]:
    for path, status in folder.names():
        if not stat.S_ISREG(status.st_mode):
            continue
        try:
            split_path(path)
        except (ToolError, UnicodeEncodeError):
            # Not made by our tools, which cannot name it either.
            continue
        yield path, status.st_size


def file_uri(scheme: str, path: str) -> str:
    """The URI of a file: `SCHEME:///` and its path, all but letters, digits and `/._~-` percent-encoded."""
    return f"{scheme}:///{quote(path, safe='/')}"


def file_path(scheme: str, uri: str) -> str:
    """The path whose `file_uri` is exactly this text. Raises ResourceError.

    Another spelling of it is no resource, so that a policy's glob over URIs cannot be passed by one.
    """
    head = f"{scheme}:///"
    try:
        path = unquote_to_bytes(uri.removeprefix(head)).decode()
        split_path(path)
    except (ToolError, UnicodeError):
        path = ""
    if not path or file_uri(scheme, path) != uri:
        raise ResourceError(f"there is no resource {uri[:200]!a}; resources/list has all of them")
    return path
