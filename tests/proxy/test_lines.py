from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.lines import LineBuffer, Part, Piece


def whole(data: bytes) -> Piece:
    return Piece(Part.WHOLE, data)


def test_only_a_line_feed_ends_a_line() -> None:
    buffer = LineBuffer(100)
    assert buffer.feed("a\rb\u2028c\u0085d\x0b\x0c\r\n\ne".encode()) == [
        whole("a\rb\u2028c\u0085d\x0b\x0c\r\n".encode()),
        whole(b"\n"),
    ]
    assert buffer.end() == [whole(b"e")]
    assert buffer.end() == []


@pytest.mark.parametrize("size", [4, 5])
def test_a_line_of_the_limit_comes_whole_and_a_longer_one_flows(size: int) -> None:
    buffer = LineBuffer(5)
    pieces = buffer.feed(b"x" * size + b"\n")
    if size == 4:
        assert pieces == [whole(b"xxxx\n")]
    else:
        assert pieces == [Piece(Part.FIRST, b"xxxxx"), Piece(Part.LAST, b"\n")]


def test_a_line_that_flows_is_told_by_its_parts() -> None:
    buffer = LineBuffer(3)
    assert buffer.feed(b"ab") == []
    assert not buffer.flowing
    assert buffer.feed(b"cd") == [Piece(Part.FIRST, b"abc"), Piece(Part.MORE, b"d")]
    assert buffer.flowing
    assert buffer.feed(b"e") == [Piece(Part.MORE, b"e")]
    assert buffer.feed(b"\nf\n") == [Piece(Part.LAST, b"\n"), whole(b"f\n")]
    assert not buffer.flowing


def test_a_stream_that_ends_inside_a_flowing_line_says_so() -> None:
    buffer = LineBuffer(3)
    buffer.feed(b"abcdef")
    assert buffer.end() == [Piece(Part.LAST, b"")]
    assert not buffer.flowing


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6), st.integers(1, 12))
def test_pieces_join_to_the_stream_and_lines_do_not_depend_on_cuts(data: bytes, cuts: list[int], limit: int) -> None:
    data = data.replace(b"\x00", b"\n")
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    buffer = LineBuffer(limit)
    pieces = [piece for start, end in pairwise(places) for piece in buffer.feed(data[start:end])] + buffer.end()
    assert b"".join(piece.data for piece in pieces) == data
    lines: list[bytes] = []
    for part, text in pieces:
        match part:
            case Part.WHOLE:
                assert len(text) <= limit
                lines.append(text)
            case Part.FIRST:
                assert len(text) == limit
                lines.append(text)
            case Part.MORE | Part.LAST:
                lines[-1] += text
    *ended, tail = data.split(b"\n")
    assert lines == [line + b"\n" for line in ended] + ([tail] if tail else [])
