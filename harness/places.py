"""What stands at a path that a person or a file names, whatever that path is. Refuses to know what it means."""

from pathlib import Path

from proxy.plainfile import open_plain


def is_file(path: Path) -> bool:
    """Whether there is a file that can be reached; false for what is no path, too long, or behind a closed folder."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """The same of a folder."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """The same of anything."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def text_of(path: Path) -> str:
    """The text of a regular file, in UTF-8 with or without a mark. Raises OSError and UnicodeDecodeError."""
    with open_plain(path, follow=True) as file:
        return file.read().decode("utf-8-sig")
