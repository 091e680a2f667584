import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.runfolder import (
    RunFolderError,
    as_text,
    make_run_folder,
    make_trial_folder,
    new_run_id,
    replace,
    write_new,
    write_pieces,
)
from proxy.spans import JSON


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_run_id_is_utc_time_and_four_hex_digits() -> None:
    assert new_run_id(datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC)).startswith("20261130T010203Z-")
    assert len(new_run_id()) == len("20261130T010203Z-9f3c")


def test_an_id_that_is_taken_is_not_used_again(tmp_path: Path) -> None:
    ids = iter(["one", "one", "two"])
    assert make_run_folder(tmp_path, lambda: next(ids)).name == "one"
    assert make_run_folder(tmp_path, lambda: next(ids)).name == "two"


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="--out"):
        make_run_folder(tmp_path / "file" / "runs")


def test_a_trials_folder_is_made_once(tmp_path: Path) -> None:
    folder = make_trial_folder(tmp_path, "s", 1)
    assert mode(folder.path) == mode(folder.spans) == mode(folder.path.parent) == 0o700
    with pytest.raises(FileExistsError):
        make_trial_folder(tmp_path, "s", 1)


def test_a_file_is_private_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    replace(path, "one")
    replace(path, "two")
    assert path.read_text() == "two"
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_that_were_kept_as_surrogates_are_written_as_they_were(tmp_path: Path) -> None:
    path = write_new(tmp_path / "prompt.txt", b"\xff\r\n".decode(errors="surrogateescape"))
    assert path.read_bytes() == b"\xff\r\n"


def test_a_text_in_pieces_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> Iterator[str]:
        yield "a"
        raise ValueError("no JSON")

    assert write_pieces(tmp_path / "whole", iter(["a", "b\n"])).read_text() == "ab\n"
    assert mode(tmp_path / "whole") == 0o600
    with pytest.raises(ValueError, match="no JSON"):
        write_pieces(tmp_path / "broken", broken())
    with pytest.raises(FileExistsError):
        write_pieces(tmp_path / "whole", ["c"])
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


@settings(max_examples=80)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=2).map(tuple),
            st.dictionaries(st.text(max_size=3), inner, max_size=3),
            st.dictionaries(st.integers(), inner, max_size=1),
        ),
        max_leaves=8,
    )
)
def test_a_document_is_written_as_the_standard_library_indents_it(document: JSON) -> None:
    assert as_text(document) == json.dumps(document, indent=2) + "\n"


def test_a_document_that_nests_deep_is_written_too() -> None:
    deep: JSON = []
    for _ in range(300):
        deep = [deep]
    assert as_text(deep) == json.dumps(deep, indent=2) + "\n"
