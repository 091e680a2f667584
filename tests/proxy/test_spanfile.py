import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from proxy.spanfile import FRESH, SpanFile, SpanFileError


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_new_file_is_private_and_named_after_server_and_process(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "spans"
    file = SpanFile.create(folder, "crm")
    file.close()
    server, pid, digits, suffix = os.path.basename(file.path).split(".")
    assert (server, pid, suffix) == ("crm", str(os.getpid()), "jsonl")
    assert len(digits) == 8
    assert int(digits, 16) >= 0
    assert (mode(folder), mode(folder.parent), mode(file.path)) == (0o700, 0o700, 0o600)


def test_two_connections_of_one_process_have_two_files(tmp_path: Path) -> None:
    first, second = SpanFile.create(tmp_path, "crm"), SpanFile.create(tmp_path, "crm")
    assert first.path != second.path
    first.close()
    second.close()


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    SpanFile.create_named(tmp_path, "run.jsonl").close()
    with pytest.raises(SpanFileError, match=r"run\.jsonl"):
        SpanFile.create_named(tmp_path, "run.jsonl")


@pytest.mark.parametrize("server", ["", "a/b", "../x", "a\0b"])
def test_a_server_id_that_would_leave_the_folder_is_refused(tmp_path: Path, server: str) -> None:
    with pytest.raises(SpanFileError, match="server id"):
        SpanFile.create(tmp_path, server)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpanFileError, match="file/spans"):
        SpanFile.create(tmp_path / "file" / "spans", "crm")


def test_each_append_is_one_line_on_disk_before_it_returns(tmp_path: Path) -> None:
    file = SpanFile.create(tmp_path, "crm")
    file.append('{"a":1}')
    assert Path(file.path).read_bytes() == b'{"a":1}\n'
    file.append(b'{"b":2}')
    assert Path(file.path).read_bytes() == b'{"a":1}\n{"b":2}\n'
    assert (file.recorded, file.dropped, file.broken) == (2, 0, False)
    file.close()
    file.close()


def test_a_closed_file_takes_nothing(tmp_path: Path) -> None:
    file = SpanFile.create(tmp_path, "crm")
    file.close()
    with pytest.raises(SpanFileError, match="closed"):
        file.append("{}")
    assert (file.recorded, file.dropped) == (0, 1)


def test_a_failed_write_breaks_the_file_for_ever(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    file = SpanFile("full", full)
    for _ in range(2):
        with pytest.raises(SpanFileError, match="full"):
            file.append("{}")
    assert (file.recorded, file.dropped, file.broken) == (0, 2, True)
    file.close()


def test_a_short_write_breaks_the_file_and_nothing_follows_it(tmp_path: Path) -> None:
    # A pipe that is not read takes what fits: the one place where a write to a local descriptor comes up short.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    file = SpanFile(f"/dev/fd/{writer}", writer)
    with pytest.raises(SpanFileError, match="short write"):
        file.append("x" * 1_000_000)
    held = len(os.read(reader, 2_000_000))
    with pytest.raises(SpanFileError, match="earlier"):
        file.append("{}")
    file.close()
    assert 0 < held < 1_000_000
    assert os.read(reader, 10) == b""
    os.close(reader)


def test_a_disk_limit_in_the_middle_of_a_line_leaves_whole_lines_and_one_torn_one(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys\n"
        "from proxy.spanfile import FRESH, SpanFile, SpanFileError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (25, 25))\n"
        "file = SpanFile.create(sys.argv[1], 's')\n"
        "for _ in range(5):\n"
        "    try: file.append('0123456789')\n"
        "    except SpanFileError: pass\n"
        "print(file.recorded, file.dropped)\n"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split() == ["2", "3"]
    (file,) = tmp_path.iterdir()
    assert file.read_bytes() == b"0123456789\n0123456789\n012"


def test_of_lines_written_together_none_stays_where_one_did_not_fit(tmp_path: Path) -> None:
    """None of the calls that they tell of goes on, so a whole line among them would be false."""
    program = (
        "import resource, signal, sys\n"
        "from proxy.spanfile import FRESH, SpanFile, SpanFileError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))\n"
        "file = SpanFile.create(sys.argv[1], 's')\n"
        "file.append('0123456789')\n"
        "try: file.append_all(['abcdefghij', 'klmnopqrst', 'uvwxyzabcd'])\n"
        "except SpanFileError: pass\n"
        "print(file.recorded, file.dropped)\n"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split() == ["1", "3"]
    (file,) = tmp_path.iterdir()
    assert file.read_bytes() == b"0123456789\nabcde"


def test_lines_of_two_threads_stay_whole(tmp_path: Path) -> None:
    file = SpanFile.create(tmp_path, "crm")

    def write(text: str) -> None:
        for _ in range(200):
            file.append(text * 2000)

    threads = [Thread(target=write, args=(text,)) for text in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file.close()
    lines = Path(file.path).read_text().splitlines()
    assert sorted(lines) == ["a" * 2000] * 200 + ["b" * 2000] * 200
    assert file.recorded == 400


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _add(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"{}\n")


def _replace(path: Path) -> None:
    text = path.read_bytes()
    path.unlink()
    path.write_bytes(text)


TAMPERED = {
    "removed": Path.unlink,
    "renamed": lambda path: path.rename(path.with_suffix(".away")),
    "cut": _cut,
    "added to": _add,
    "its folder removed": lambda path: shutil.rmtree(path.parent),
    "its folder renamed": lambda path: path.parent.rename(path.parent.with_suffix(".away")),
}


@pytest.mark.parametrize("moments", [(None, None), (0, FRESH - 1), (0, FRESH)], ids=["any", "fresh", "late"])
@pytest.mark.parametrize("tamper", [*TAMPERED.values(), _replace], ids=[*TAMPERED, "replaced by a copy"])
def test_a_file_that_somebody_touched_takes_nothing_more_and_says_so(
    tmp_path: Path, tamper: Callable[[Path], object], moments: tuple[int | None, int | None]
) -> None:
    file = SpanFile.create(tmp_path / "spans", "x")
    file.append("{}", moments[0])
    tamper(Path(file.path))
    late = moments[1]
    if tamper is _replace and late is not None and late < FRESH:
        file.append("{}", late)  # of what else is there a look less close says nothing
        late = FRESH
    recorded = file.recorded
    with pytest.raises(SpanFileError, match="nothing more is recorded here"):
        file.append("{}", late)
    assert file.broken
    assert (file.recorded, file.dropped) == (recorded, 1)
    file.close()
