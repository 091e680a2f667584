"""A long body that is poured arrives byte for byte, however it is framed and cut; who reads slowly slows the server."""

import select
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import pouring
from proxy import vocabulary as v
from proxy.http1 import BodyReader, FramingError
from proxy.pouring import Pour, Room, unsent
from tests.proxy.httpupstream import WAIT, Request
from tests.proxy.httpwires import JSON_TYPE, Client, through
from tests.proxy.wires import ALLOWING, call

OK = call("ok").encode()
BEGIN, END = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"pad":"', b'","isError":true}}'
BODY = BEGIN + bytes(range(35, 91)) * 60_000 + END
"""Of 3.4 MB, with nothing in it that has to be escaped."""


def poured(pour: Pour, data: bytes, cuts: list[int]) -> None:
    """Have data come in pieces to where others were, and others come to where it was."""
    here = Room()
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(ends):
        here.data[: end - start] = data[start:end]
        if pour.body.ended:
            pour.body.rest += data[start:end]
        else:
            pour.take(here, end - start)
        here.data[: end - start] = b"\0" * (end - start)


class Ends:
    """Where a body is shown and sent."""

    def __init__(self) -> None:
        self.seen = b""
        self.sent = b""

    def look(self, data: bytes | bytearray, start: int, end: int) -> None:
        self.seen += data[start:end]

    def sink(self, data: bytes | memoryview) -> None:
        self.sent += data


@pytest.mark.parametrize("worth", [1, 20, 16 * 1024])
def test_all_of_a_body_is_shown_and_sent_but_its_last_bytes(monkeypatch: pytest.MonkeyPatch, worth: int) -> None:
    monkeypatch.setattr(pouring, "_WHOLE", worth)

    @given(
        st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=6),
        st.sampled_from(["length", "chunks", "end"]),
        st.binary(max_size=5),
        st.lists(st.integers(0, 500), max_size=12),
    )
    def same(chunks: list[bytes], framing: str, behind: bytes, cuts: list[int]) -> None:
        body = b"".join(chunks)
        ends = Ends()
        if framing == "chunks":
            reader, sent = BodyReader(0, chunked=True), b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks)
            sent += b"0\r\nx: y\r\n\r\n"
        else:
            reader, sent = BodyReader(len(body) if framing == "length" else None), body
        pour = Pour(reader, ends.look, ends.sink)
        poured(pour, sent + (b"" if framing == "end" else behind), cuts)
        assert ends.sent == ends.seen
        assert ends.sent + pour.last == body
        assert reader.ended == (framing != "end")
        assert framing == "end" or reader.rest == behind
        assert framing != "length" or pour.last

    same()


@given(st.binary(max_size=80), st.lists(st.integers(0, 90), max_size=6))
def test_a_body_in_broken_chunks_breaks_where_it_does_when_it_is_read(tail: bytes, cuts: list[int]) -> None:
    data = b"14\r\n" + b"x" * 20 + b"\r\n" + tail
    ends, plain = Ends(), BodyReader(0, chunked=True)
    found, broken = b"", False
    try:
        found = plain.feed(data)
        if not plain.ended:
            found += plain.feed(b"")
    except FramingError:
        broken = True
    pour = Pour(BodyReader(0, chunked=True), ends.look, ends.sink)
    failed = False
    try:
        poured(pour, data, cuts)
        if not pour.body.ended:
            pour.whole(b"")
    except FramingError:
        failed = True
    assert failed == broken
    assert (ends.sent + pour.last).startswith(found)


@given(st.lists(st.binary(max_size=9), max_size=5), st.integers(0, 50))
def test_what_is_left_of_parts_is_what_was_not_sent(parts: list[bytes], sent: int) -> None:
    assert unsent(parts, sent) == b"".join(parts)[sent:]


@pytest.mark.parametrize("size", [0, 700, 70_000, 1_000_000])
@pytest.mark.parametrize("kind", ["application/json", "application/octet-stream"])
def test_a_large_answer_arrives_as_it_was_sent(tmp_path: Path, size: int, kind: str) -> None:
    def answer(request: Request) -> None:
        if not size:
            request.answer(BODY, headers=f"content-type: {kind}")
            return
        request.send(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % kind.encode())
        for at in range(0, len(BODY), size):
            request.chunk(BODY[at : at + size])
        request.end()

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as client:
        for _ in range(2):  # the connection is good for another one
            client.send("POST", "/mcp", OK, [JSON_TYPE])
            assert client.rest(client.head()).body == BODY
        assert [one.attributes[v.OUTCOME] for one in proxy.spans("request")] == ["tool_error"] * 2


@pytest.mark.parametrize("leaves", [False, True])
def test_a_client_that_does_not_read_holds_the_server_up_and_one_that_goes_ends_its_answer(
    tmp_path: Path, leaves: bool
) -> None:
    size = 50_000_000
    piece = b"x" * 1_000_000
    stalled, sent, gone = Event(), [0], Event()

    def answer(request: Request) -> None:
        request.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % size)
        with suppress(OSError):
            while sent[0] < size:
                if not select.select([], [request.connection], [], 0.3)[1]:
                    stalled.set()
                sent[0] += request.connection.send(piece[: size - sent[0]])
        stalled.set()
        if leaves:
            assert request.gone()
            gone.set()

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as client:
        client.send("POST", "/mcp", OK, [JSON_TYPE])
        head = client.head()
        assert stalled.wait(WAIT)
        # What the system holds of it on its four ways is the most that is under way.
        assert sent[0] < size * 0.7
        if leaves:
            client.close()
            assert gone.wait(WAIT)
            return
        left = size
        while left:
            left -= len(client.file.read1(1 << 18))
        assert head.status == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_breaks_off_breaks_off_for_the_client_behind_the_same_bytes(tmp_path: Path, chunked: bool) -> None:
    def answer(request: Request) -> None:
        if chunked:
            request.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
            request.chunk(BODY[:2_000_000])
        else:
            size = len(BODY)
            request.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % size)
            request.send(BODY[:2_000_000])
        request.connection.shutdown(1)

    with through(tmp_path, ALLOWING, answer) as (proxy, _), Client(proxy.port) as client:
        client.send("POST", "/mcp", OK, [JSON_TYPE])
        head = client.head()
        if chunked:
            with suppress(ConnectionError):
                while chunk := client.chunk():
                    head.body += chunk
                pytest.fail("the body ended")
        else:
            client.rest(head)
        assert head.body == BODY[:2_000_000]
