import os
from pathlib import Path

import pytest

from proxy.plainfile import lines_of, open_plain, read_at_most


def test_a_regular_file_is_opened_and_a_link_to_it_only_where_links_may_be_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to("a")
    with open_plain(tmp_path / "a") as stream:
        assert stream.read() == b"x"
    with open_plain(tmp_path / "link", follow=True) as stream:
        assert stream.read() == b"x"
    with pytest.raises(OSError, match="link"):
        open_plain(tmp_path / "link")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    with pytest.raises(OSError, match=r"no regular file|directory"):
        open_plain(path, follow=True)


def test_a_line_past_the_limit_is_refused_before_it_is_whole_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345678\n" + b"1234567890")
    with open_plain(path) as stream:
        lines = lines_of(stream, 9)
        assert next(lines) == b"12345678\n"
        with pytest.raises(OSError, match="more than 9 bytes"):
            next(lines)


def test_a_rest_past_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1234567890")
    with open_plain(path) as stream:
        assert read_at_most(stream, 10) == b"1234567890"
    with open_plain(path) as stream, pytest.raises(OSError, match="more than 9 bytes"):
        read_at_most(stream, 9)
