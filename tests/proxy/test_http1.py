"""HTTP/1.1 cut out of bytes: what h11 reads is read alike, cut anywhere, and what has two readings is refused."""

from contextlib import suppress
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.http1 import (
    AnswerHead,
    BodyReader,
    FramingError,
    RequestHead,
    answer_body,
    answer_head,
    read_answer,
    read_request,
    request_body,
    request_head,
)
from proxy.httpwords import Headers, values

TOKENS = st.text("abcXYZ-_.!1", min_size=1, max_size=8).map(str.encode)
TEXTS = st.text('ab \t:;,"\\xé', max_size=12).map(lambda text: text.encode("latin-1").strip(b" \t"))
HEADERS = st.lists(st.tuples(TOKENS, TEXTS), max_size=6)
LENGTHS = st.sampled_from([b"0", b"3", b"03", b"3, 3", b"3,4", b"+3", b"x", b""])
BODIES = st.lists(st.binary(min_size=1, max_size=50), max_size=5)


def lower(headers: Headers) -> Headers:
    return [(key.lower(), value) for key, value in headers]


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


def fed(reader: BodyReader, data: bytes, cuts: list[int]) -> bytes:
    found = b""
    for piece in pieces(data, cuts):
        if reader.ended:
            reader.rest += piece
        else:
            found += reader.feed(piece)
    return found


@given(HEADERS, st.binary(max_size=9))
def test_a_head_is_read_as_it_was_sent(headers: Headers, rest: bytes) -> None:
    sent = request_head(RequestHead(b"POST", b"/a?b", headers))
    assert read_request(sent + rest) == (RequestHead(b"POST", b"/a?b", lower(headers)), rest)
    assert read_answer(answer_head(404, headers) + rest) == (AnswerHead(404, lower(headers)), rest)
    for cut in range(len(sent)):
        assert read_request(sent[:cut]) is None


@given(HEADERS)
def test_h11_reads_the_same_headers(headers: Headers) -> None:
    wire = h11.Connection(h11.SERVER)
    wire.receive_data(request_head(RequestHead(b"GET", b"/", [(b"host", b"x"), *headers])))
    event = wire.next_event()
    assert isinstance(event, h11.Request)
    assert list(event.headers) == [(b"host", b"x"), *lower(headers)]


@given(BODIES, st.lists(st.integers(0, 400)), st.binary(max_size=5))
def test_a_chunked_body_is_the_same_however_it_is_cut(chunks: list[bytes], cuts: list[int], rest: bytes) -> None:
    data = b"".join(b"%x;a=b\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nx: y\r\n\r\n" + rest
    reader = request_body(RequestHead(b"POST", b"/", [(b"transfer-encoding", b"Chunked")]))
    assert fed(reader, data, cuts) == b"".join(chunks)
    assert (reader.ended, reader.rest) == (True, rest)


@given(st.binary(max_size=50), st.lists(st.integers(0, 60)), st.binary(max_size=5))
def test_a_body_of_a_length_ends_there(body: bytes, cuts: list[int], rest: bytes) -> None:
    reader = request_body(RequestHead(b"POST", b"/", [(b"content-length", b"%d" % len(body))]))
    assert fed(reader, body + rest, cuts) == body
    assert reader.ended
    assert reader.rest.endswith(rest) or not body


@given(st.binary(max_size=200))
def test_no_bytes_break_a_reader_otherwise_than_by_saying_so(data: bytes) -> None:
    for read in (read_request, read_answer):
        with suppress(FramingError):
            read(data)
    reader = BodyReader(0, chunked=True)
    try:
        reader.feed(data)
        reader.feed(data)
    except FramingError:
        assert not reader.ended


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\nhost: x\n\n",
        b"GET / HTTP/1.1\r\nhost: x\n\r\n\r\n",
        b"GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n",
        b"GET / HTTP/1.1\r\na : b\r\n\r\n",
        b"GET / HTTP/1.1\r\na: b\rc\r\n\r\n",
        b"GET / HTTP/1.1\r\na: \0\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\n\r\n",
    ],
)
def test_a_request_that_two_readers_may_cut_differently_is_refused(head: bytes) -> None:
    with pytest.raises(FramingError):
        read_request(head)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")],
        [(b"content-length", b"1"), (b"content-length", b"1")],
        [(b"content-length", b"+1")],
        [(b"content-length", b"1, 1")],
        [(b"content-length", b"")],
        [(b"transfer-encoding", b"gzip, chunked")],
        [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")],
        [(b"transfer-encoding", b"xchunked")],
    ],
)
def test_a_request_without_one_length_is_refused(headers: Headers) -> None:
    with pytest.raises(FramingError):
        request_body(RequestHead(b"POST", b"/", headers))


@pytest.mark.parametrize("data", [b"g\r\n", b"-1\r\n", b"1\r\nab\r\n", b" 1\r\n", b"1" * 20 + b"\r\n", b"1" * 17000])
def test_a_broken_chunk_is_told(data: bytes) -> None:
    reader = BodyReader(0, chunked=True)
    with pytest.raises(FramingError):
        [reader.feed(data) for _ in range(3)]


def test_answers_are_read_as_clients_read_them() -> None:
    folded = b"HTTP/1.0 200\nA: b\n  c\n\nrest"
    assert read_answer(folded) == (AnswerHead(200, [(b"a", b"b c")], 0), b"rest")
    assert answer_body(AnswerHead(204, [(b"content-length", b"5")]), b"GET").ended
    assert answer_body(AnswerHead(200, [(b"content-length", b"5")]), b"HEAD").ended
    until_the_end = answer_body(AnswerHead(200, []), b"GET")
    assert until_the_end.feed(b"abc") == b"abc"
    until_the_end.end()
    assert until_the_end.ended
    short = answer_body(AnswerHead(200, [(b"content-length", b"5")]), b"GET")
    short.feed(b"abc")
    with pytest.raises(FramingError):
        short.end()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(b"Content-Length"), LENGTHS),
            st.tuples(st.just(b"Transfer-Encoding"), st.sampled_from([b"chunked", b"gzip, chunked", b"identity"])),
            st.just((b"X", b"content-length: 3")),
        ),
        max_size=4,
    )
)
def test_an_answer_goes_on_with_one_framing_or_not_at_all(headers: Headers) -> None:
    try:
        found = read_answer(answer_head(200, headers))
        assert found is not None
        reader = answer_body(found[0], b"GET")
    except FramingError:
        return
    lengths = values(found[0].headers, b"content-length")
    encodings = values(found[0].headers, b"transfer-encoding")
    assert len(lengths) + len(encodings) <= 1
    assert reader.chunked == bool(encodings)
    assert (reader.left is None) == (not lengths and not encodings)
    if lengths:
        assert {b"%d" % int(part) for key, one in headers if key == b"Content-Length" for part in one.split(b",")} == {
            b"%d" % int(lengths[0])
        }
    others = [pair for pair in lower(headers) if pair[0] == b"x"]
    assert [pair for pair in found[0].headers if pair[0] == b"x"] == others


def test_no_header_can_bring_in_another() -> None:
    for bad in (b"a\r\nb: c", b"\n", b"\0"):
        with pytest.raises(FramingError):
            answer_head(200, [(b"x", bad)])
        with pytest.raises(FramingError):
            request_head(RequestHead(b"GET", b"/", [(b"x", bad)]))
    with pytest.raises(FramingError):
        request_head(RequestHead(b"GET", b"/ HTTP/1.1\r\nx: y\r\n", []))
