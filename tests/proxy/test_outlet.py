"""Whole lines only: what flows, what is ours and what waits share one outlet."""

import os
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from proxy.pumps import Outlet
from tests.proxy.pipereader import DEADLINE, Reader


@pytest.fixture
def outlet() -> Iterator[tuple[Outlet, Reader]]:
    read, write = os.pipe()
    made, reader = Outlet(write), Reader(read)
    yield made, reader
    made.end()
    reader.all()


def test_a_line_of_ours_waits_for_the_end_of_a_line_that_flows(outlet: tuple[Outlet, Reader]) -> None:
    out, reader = outlet
    out.send(b"first half, ", mid_line=True)
    out.post(b"ours\n")
    out.post(b"ours too\n")
    assert reader.wait_for(12) == b"first half, "
    out.send(b"more, ", mid_line=True)
    out.send(b"second half\n", mid_line=False)
    out.end()
    assert reader.all() == b"first half, more, second half\nours\nours too\n"


def test_a_line_of_ours_is_written_at_once_between_two_lines(outlet: tuple[Outlet, Reader]) -> None:
    out, reader = outlet
    out.send(b"theirs\n", mid_line=False)
    out.post(b"ours\n")
    assert reader.wait_for(12) == b"theirs\nours\n"
    out.send(b"", mid_line=False)
    out.send(b"theirs\n", mid_line=False)
    assert reader.wait_for(19) == b"theirs\nours\ntheirs\n"


def test_the_end_writes_what_is_posted(outlet: tuple[Outlet, Reader]) -> None:
    out, reader = outlet
    for number in range(50):
        out.post(b"ours %d\n" % number)
    out.end()
    assert reader.all() == b"".join(b"ours %d\n" % number for number in range(50))


def test_a_line_of_ours_is_never_glued_to_an_unterminated_one(outlet: tuple[Outlet, Reader]) -> None:
    out, reader = outlet
    out.send(b"cut off", mid_line=True)
    out.post(b"ours\n")
    out.end()
    assert reader.all() == b"cut off\nours\n"


def test_an_unterminated_last_line_stays_so(outlet: tuple[Outlet, Reader]) -> None:
    out, reader = outlet
    out.send(b"cut off", mid_line=True)
    out.end()
    assert reader.all() == b"cut off"


def test_a_peer_that_has_gone_is_noticed_and_nothing_blocks() -> None:
    read, write = os.pipe()
    os.close(read)
    out = Outlet(write)
    out.post(b"ours\n")
    out.send(b"theirs\n", mid_line=False)
    assert out.gone
    out.send(b"theirs\n", mid_line=True)
    out.post(b"ours\n")
    out.end()
    assert out.fd == -1


def test_a_posted_line_does_not_hold_up_who_posts_it_when_the_peer_does_not_read() -> None:
    read, write = os.pipe()
    out = Outlet(write)
    out.post(b"x" * 1_000_000 + b"\n")
    out.post(b"y\n")
    reader = Reader(read)
    out.end()
    assert reader.all() == b"x" * 1_000_000 + b"\ny\n"


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    out = Outlet(write)
    filled = Event()

    def send() -> None:
        out.send(b"x" * 1_000_000 + b"\n", mid_line=False)
        filled.set()

    sender = Thread(target=send)
    sender.start()
    reader = Reader(read)
    sender.join(DEADLINE)
    assert filled.is_set()
    out.end()
    assert len(reader.all()) == 1_000_001
    assert not out.gone


def test_a_piece_is_written_with_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    out, real = Outlet(write), os.write
    wrote: list[bytes] = []

    def told(fd: int, data: bytes) -> int:
        wrote.append(bytes(data))
        return real(fd, data)

    monkeypatch.setattr(os, "write", told)
    out.send(b"theirs\n", mid_line=False)
    out.end()
    assert wrote == [b"theirs\n"]
    assert Reader(read).all() == b"theirs\n"
