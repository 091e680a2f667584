from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from proxy.lines import Part
from proxy.sse import Event, EventReader, new_event, with_data


def told(events: list[Event]) -> list[tuple[str, str, bytes]]:
    """The events that have data, those in pieces put together."""
    found: list[tuple[str, str, bytes]] = []
    held = b""
    for event in events:
        held += event.piece.data
        if event.piece.part in {Part.WHOLE, Part.LAST}:
            if event.has_data:
                found.append((event.name, event.id, held))
            held = b""
    return found


def read(stream: bytes, limit: int = 100, size: int = 0) -> list[tuple[str, str, bytes]]:
    reader = EventReader(limit)
    size = size or len(stream) or 1
    return told([event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])])


def test_fields_are_read_as_the_standard_has_them() -> None:
    stream = b"\xef\xbb\xbf: c\nevent: a\ndata: x\ndata:y\ndata\nid: 1\nother: z\nretry: 3\n\ndata:  two\n\nid: 9\n\n"
    assert read(stream) == [("a", "1", b"x\ny\n"), ("", "", b" two")]


def test_every_line_end_ends_a_line() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        assert read(end.join([b"event: e", b"data: 1", b"", b"data: 2", b"", b""])) == [("e", "", b"1"), ("", "", b"2")]


def test_an_event_that_a_carriage_return_ends_is_told_at_once() -> None:
    reader = EventReader(100)
    assert told(reader.feed(b"data: 1\r\r")) == [("", "", b"1")]
    assert told(reader.feed(b"\ndata: 2\r\n\r")) == [("", "", b"2")]
    assert told(reader.feed(b"\ndata: 3\n\n")) == [("", "", b"3")]


def test_an_event_that_is_not_ended_is_none() -> None:
    assert read(b"data: 1\n") == []


ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
lines = st.sampled_from(
    [b"data: a", b"data:b" * 9, b"data", b"event: e", b"id: 5", b": c", b"", b"", b"x", b"data: \xff"]
)


@given(st.lists(st.tuples(lines, ends)), st.integers(1, 9), st.integers(1, 60))
def test_where_a_stream_is_cut_changes_nothing(parts: list[tuple[bytes, bytes]], size: int, limit: int) -> None:
    stream = b"".join(line + end for line, end in parts)
    whole = EventReader(1000)
    events = whole.feed(stream)
    assert read(stream, limit, size) == told(events)
    places = [(event.start, event.end) for event in events]
    assert all(start <= end for start, end in places)
    assert all(before[1] <= after[0] for before, after in pairwise(places))


@given(st.lists(st.tuples(lines, ends)), st.sampled_from([b"", b"new"]))
def test_other_data_leaves_every_other_line_of_an_event(parts: list[tuple[bytes, bytes]], new: bytes) -> None:
    block = b"".join(line + end for line, end in parts if line) + b"\r\n"
    edited = with_data(block, new)
    assert [one[2] for one in read(edited)] == ([new] if new else [])

    def rest(text: bytes) -> list[bytes]:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return [line for line in text.split(b"\n") if line.partition(b":")[0] != b"data" and line]

    assert rest(edited) == rest(block)


def test_an_event_of_ours_reads_back() -> None:
    assert read(new_event("message", "4", b"{}")) == [("message", "4", b"{}")]
