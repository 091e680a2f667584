import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.targets.counting import CallCounter
from harness.targets.folderwatch import FolderWatch
from proxy.spans import INTERNAL, Span, encode_span
from proxy.vocabulary import METHOD, REQUEST, SPAN_KIND


def line(kind: str, method: str, request: str = "") -> bytes:
    attributes = {SPAN_KIND: kind, METHOD: method, REQUEST: request}
    span = Span("0" * 31 + "1", "0" * 15 + "1", "", kind, INTERNAL, 1, 1, attributes)
    return encode_span(span, "0").encode() + b"\n"


def test_each_decision_on_a_call_counts_once_and_nothing_else_does(tmp_path: Path) -> None:
    counter = CallCounter(tmp_path)
    assert counter.count() == 0
    file = tmp_path / "crm.1.jsonl"
    file.write_bytes(line("decision", "tools/call") + line("request", "tools/call"))
    (tmp_path / "other.2.jsonl").write_bytes(line("decision", "resources/read", '{"method":"tools/call"}'))
    assert counter.count() == 1
    with file.open("ab") as more:
        more.write(line("decision", "tools/call"))
    assert counter.count() == 2
    assert counter.count() == 2


def test_a_line_counts_when_it_is_whole(tmp_path: Path) -> None:
    counter = CallCounter(tmp_path)
    whole = line("decision", "tools/call")
    (tmp_path / "a.jsonl").write_bytes(whole[:50])
    assert counter.count() == 0
    (tmp_path / "a.jsonl").write_bytes(whole)
    assert counter.count() == 1


def test_a_broken_line_and_a_line_of_another_shape_count_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'"decision" "tools/call"\n["decision", "tools/call"]\n')
    assert CallCounter(tmp_path).count() == 0


def _remove(path: Path) -> None:
    path.unlink()


def _rename(path: Path) -> None:
    path.rename(path.with_name("b.jsonl"))


def _cut(path: Path) -> None:
    os.truncate(path, 3)


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [(_remove, "removed or renamed"), (_rename, "removed or renamed"), (_cut, "cut short"), (_replace, "replaced")],
)
def test_what_no_proxy_does_to_a_span_file_is_noted(tmp_path: Path, change: Callable[[Path], None], said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("12345\n")
    counter = CallCounter(tmp_path)
    counter.look()
    with path.open("a") as file:
        file.write("67890\n")
    (tmp_path / "new.jsonl").write_text("")
    counter.look()
    before = counter.doubts
    change(path)
    counter.look()
    counter.look()
    assert before == ()
    assert [said in doubt for doubt in counter.doubts] == [True]


def _between(path: Path) -> None:
    made = path.with_name("quick.jsonl")
    made.write_text("1\n")
    made.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of what happens to a folder")
@pytest.mark.parametrize(
    ("change", "said"),
    [(_between, "removed or renamed"), (_remove, "removed or renamed"), (_rename, "removed or renamed"),
     (_replace, "replaced")],
)  # fmt: skip
def test_what_happens_between_two_looks_is_noted(tmp_path: Path, change: Callable[[Path], None], said: str) -> None:
    path = tmp_path / "a.jsonl"
    with FolderWatch(tmp_path) as watch:
        counter = CallCounter(tmp_path, watch)
        path.write_text("12345\n")
        (tmp_path / "other.txt").write_text("")
        (tmp_path / "other.txt").unlink()
        counter.look()
        assert not counter.doubts
        path.write_text("12345\n6\n")
        change(path)
        counter.look()
    assert any(said in doubt for doubt in counter.doubts), counter.doubts


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of what happens to a folder")
def test_a_watch_that_cannot_be_kept_is_noted(tmp_path: Path) -> None:
    with FolderWatch(tmp_path / "missing") as watch:
        tmp_path.joinpath("missing").mkdir()
        counter = CallCounter(tmp_path / "missing", watch)
        counter.look()
    assert counter.doubts == ("the span files could not be watched: No such file or directory",)


def test_a_folder_that_is_gone_is_noted_and_pipes_among_the_files_hold_nothing_up(tmp_path: Path) -> None:
    folder = tmp_path / "spans"
    folder.mkdir()
    os.mkfifo(folder / "a.jsonl")
    counter = CallCounter(folder)
    assert counter.count() == 0
    shutil.rmtree(folder)
    assert counter.count() == 0
    assert "could not be watched" in counter.doubts[-1]
