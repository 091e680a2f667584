import hashlib
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.fixture import ToolError
from servers.folder import MOST_BYTES, Folder, FolderError, split_path
from servers.manifest import read_manifest, read_row, row_number
from servers.resources import ResourceError, file_path, file_uri, listed_files

OUTSIDE = "not yours"
HOSTILE = [
    "",
    ".",
    "..",
    "../outside.txt",
    "a/../../outside.txt",
    "a/..",
    "./a.txt",
    "a//b",
    "a/",
    "/a.txt",
    "//a",
    "a\0b",
    "a\nb",
    "a/\x7f",
    "x" * 256,
    "é" * 128,
    "/".join("x" * 200 for _ in range(6)),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text(OUTSIDE)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "inner.txt").write_text(OUTSIDE)
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("inside")
    (root / "sub" / "b.txt").write_text("below")
    return root


@pytest.fixture
def folder(root: Path) -> Iterator[Folder]:
    folder = Folder(root)
    yield folder
    folder.close()


def untouched(root: Path) -> bool:
    """Whether all that lies beside the folder is as it was, drafts included."""
    beside = {path.name for path in root.parent.iterdir()}
    return (
        beside == {"outside.txt", "elsewhere", "root"}
        and (root.parent / "outside.txt").read_text() == OUTSIDE
        and [path.name for path in (root.parent / "elsewhere").iterdir()] == ["inner.txt"]
        and (root.parent / "elsewhere" / "inner.txt").read_text() == OUTSIDE
    )


def attempts(folder: Folder, path: str) -> list[str]:
    """What reading, writing and deleting the path is refused with."""
    said = []
    for attempt in (lambda: folder.read(path), lambda: folder.write(path, b"x"), lambda: folder.delete(path)):
        with pytest.raises(ToolError) as caught:
            attempt()
        said.append(str(caught.value))
    return said


@pytest.mark.parametrize("path", HOSTILE)
def test_a_path_that_is_not_plain_is_refused_by_every_operation_with_one_line(
    folder: Folder, root: Path, path: str
) -> None:
    for said in attempts(folder, path):
        assert said.startswith("path ")
        assert "\n" not in said
        assert len(said) < 500
    assert untouched(root)
    assert listed_files(folder) == [("a.txt", 6), ("sub/b.txt", 5)]


@settings(max_examples=150)
@given(st.text(alphabet="a./\\\0~é%", max_size=12))
def test_every_path_that_is_taken_has_only_plain_parts(path: str) -> None:
    with suppress(ToolError):
        parts = split_path(path)
        assert "/".join(parts) == path
        assert not any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts)


def test_a_file_that_is_a_link_is_neither_read_nor_written_nor_deleted(folder: Folder, root: Path) -> None:
    (root / "link.txt").symlink_to("../outside.txt")
    (root / "own.txt").symlink_to("a.txt")
    for name in ("link.txt", "own.txt"):
        attempts(folder, name)
        assert (root / name).is_symlink()
    assert untouched(root)


def test_a_folder_that_is_a_link_is_not_entered(folder: Folder, root: Path) -> None:
    (root / "way").symlink_to("../elsewhere", target_is_directory=True)
    for path in ("way/inner.txt", "way/new.txt", "way/deep/new.txt"):
        attempts(folder, path)
    assert listed_files(folder) == [("a.txt", 6), ("sub/b.txt", 5)]
    assert untouched(root)


def test_links_planted_while_files_are_used_lead_nowhere(folder: Folder, root: Path) -> None:
    stop = Event()
    real, link = root / "sub", root / "kept"

    def swap() -> None:
        # `sub` is in turn the folder and a link to a folder outside that has a file of the same name.
        (root.parent / "elsewhere" / "b.txt").write_text(OUTSIDE)
        while not stop.is_set():
            # A write that is quicker makes the folder anew: then a step fails, and the next round sets it right.
            with suppress(OSError):
                real.rename(link)
            with suppress(OSError):
                real.symlink_to("../elsewhere", target_is_directory=True)
            with suppress(OSError):
                real.unlink() if real.is_symlink() else shutil.rmtree(real)
            with suppress(OSError):
                link.rename(real)

    thread = Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for number in range(400):
            with suppress(ToolError):
                seen.add(folder.read("sub/b.txt"))
            with suppress(ToolError):
                folder.write(f"sub/new{number}.txt", b"x")
            with suppress(ToolError):
                folder.delete("sub/inner.txt")
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"below"}
    assert sorted(path.name for path in (root.parent / "elsewhere").iterdir()) == ["b.txt", "inner.txt"]


def test_a_link_in_place_of_a_file_between_check_and_use_is_not_written_through(folder: Folder, root: Path) -> None:
    stop = Event()
    spot = root / "spot.txt"

    def plant() -> None:
        while not stop.is_set():
            with suppress(FileExistsError):
                spot.symlink_to("../outside.txt")
            spot.unlink(missing_ok=True)

    thread = Thread(target=plant)
    thread.start()
    seen = set()
    try:
        for _ in range(400):
            with suppress(ToolError):
                folder.write("spot.txt", b"mine")
            with suppress(ToolError):
                seen.add(folder.read("spot.txt"))
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"mine"}
    assert untouched(root)


def test_another_name_of_a_file_keeps_its_bytes_when_the_file_is_written(folder: Folder, root: Path) -> None:
    os.link(root.parent / "outside.txt", root / "hard.txt")
    assert folder.write("hard.txt", b"mine") is False
    assert (root / "hard.txt").read_text() == "mine"
    assert untouched(root)


def test_pipes_sockets_and_folders_are_no_files_and_nothing_waits_for_them(folder: Folder, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
    for name in ("pipe", "socket", "sub"):
        attempts(folder, name)
    assert untouched(root)


def test_a_file_stands_for_the_folders_above_it(folder: Folder, root: Path) -> None:
    assert folder.write("x/y/z.txt", b"1") is True
    assert folder.write("x/w.txt", b"2") is True
    folder.delete("x/y/z.txt")
    assert not (root / "x" / "y").exists()
    folder.delete("x/w.txt")
    assert not (root / "x").exists()
    with pytest.raises(ToolError, match="a link or a file is in the way"):
        folder.write("a.txt/b.txt", b"3")
    with pytest.raises(ToolError, match="is no file"):
        folder.write("sub", b"3")
    assert listed_files(folder) == [("a.txt", 6), ("sub/b.txt", 5)]


def test_too_much_is_neither_written_nor_read(folder: Folder, root: Path) -> None:
    with pytest.raises(ToolError, match="more than"):
        folder.write("new/big.bin", b"x" * (MOST_BYTES + 1))
    assert not (root / "new").exists()
    (root / "big.bin").write_bytes(b"x" * (MOST_BYTES + 1))
    with pytest.raises(ToolError, match="more than"):
        folder.read("big.bin")


def test_a_root_that_is_no_folder_cannot_be_opened(root: Path) -> None:
    for path in (root / "a.txt", root / "absent"):
        with pytest.raises(FolderError, match="cannot be opened"):
            Folder(path)


def test_the_manifest_has_every_entry_whatever_it_is(folder: Folder, root: Path) -> None:
    (root / "way").symlink_to("../elsewhere", target_is_directory=True)
    (root / "raw.bin").write_bytes(b"\xff\x00")
    (root / "long.txt").write_bytes(b"x" * 65537)
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"caf\xe9")).write_text("latin")
    manifest = read_manifest(folder)
    assert [(row["path"], row["kind"], row["bytes"], row["text"]) for row in manifest.values()] == [
        ("a.txt", "file", 6, "inside"),
        ("caf\udce9", "file", 5, "latin"),
        ("long.txt", "file", 65537, None),
        ("pipe", "other", 0, None),
        ("raw.bin", "file", 2, None),
        ("sub/b.txt", "file", 5, "below"),
        ("way", "link", 12, "../elsewhere"),
    ]
    assert manifest[row_number("a.txt")]["sha256"] == hashlib.sha256(b"inside").hexdigest()
    assert all(number == row_number(str(row["path"])) and 0 <= number < 2**63 for number, row in manifest.items())
    assert [path for path, _ in listed_files(folder)] == ["a.txt", "long.txt", "raw.bin", "sub/b.txt"]


def test_a_row_stays_the_same_whatever_comes_and_goes_beside_it(folder: Folder) -> None:
    before = read_manifest(folder)
    folder.write("0.txt", b"first in order")
    folder.delete("a.txt")
    after = read_manifest(folder)
    kept = row_number("sub/b.txt")
    assert after[kept] == before[kept] == read_row(folder, "sub/b.txt")
    assert read_row(folder, "a.txt") is read_row(folder, "sub") is read_row(folder, "sub/b.txt/c") is None


@settings(max_examples=150)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4).map("/".join))
def test_a_file_has_one_uri_and_the_uri_one_file(path: str) -> None:
    try:
        split_path(path)
        path.encode()
    except (ToolError, UnicodeEncodeError):
        return
    uri = file_uri("files", path)
    assert uri.isascii()
    assert file_path("files", uri) == path


@pytest.mark.parametrize(
    "uri",
    [
        "files:///../outside.txt",
        "files:///%2e%2e/outside.txt",
        "files:///sub%2Fb.txt",
        "files:///%61.txt",
        "files:///a.txt?x",
        "files:///a.txt#x",
        "files:///a%00",
        "files:///%ff",
        "files:////a.txt",
        "files:///",
        "files://a.txt",
        "FILES:///a.txt",
        "file:///a.txt",
        "a.txt",
        "",
    ],
)
def test_another_spelling_of_a_uri_is_no_resource(uri: str) -> None:
    with pytest.raises(ResourceError, match="there is no resource"):
        file_path("files", uri)
