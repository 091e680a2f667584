"""A packed body is unpacked as clients unpack it, however it is cut, and what only some of them unpack is told."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.unpack import Unpacker
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import through
from tests.proxy.wires import ALLOWING, call

SAMPLING = b'{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


WAYS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "gzip": (b"gzip", gzip.compress),
    "deflate": (b"deflate", zlib.compress),
    "deflate without a header": (b"deflate", raw),
}


def fed(data: bytes, size: int) -> tuple[Unpacker, bytes]:
    unpacker = Unpacker()
    return unpacker, b"".join(unpacker.feed(data[at : at + size]) for at in range(0, len(data), size))


@given(st.sampled_from(sorted(WAYS)), st.binary(max_size=300), st.integers(1, 50))
def test_a_packed_body_is_the_same_however_it_is_cut(way: str, data: bytes, size: int) -> None:
    unpacker, found = fed(WAYS[way][1](data), size)
    assert found == data
    assert (unpacker.whole, unpacker.broken, unpacker.problem) == (True, False, None)


@given(st.lists(st.binary(max_size=50), min_size=2, max_size=4), st.integers(1, 50))
def test_all_members_are_unpacked_and_told(parts: list[bytes], size: int) -> None:
    unpacker, found = fed(b"".join(gzip.compress(part) for part in parts), size)
    assert found == b"".join(parts)
    assert unpacker.whole
    assert "members" in str(unpacker.problem)


@given(st.sampled_from(sorted(WAYS)), st.binary(max_size=100), st.integers(1, 20), st.binary(min_size=1, max_size=9))
def test_what_is_cut_short_or_has_more_behind_it_is_told(way: str, data: bytes, cut: int, more: bytes) -> None:
    packed = WAYS[way][1](data)
    assert fed(packed[:-cut], 7)[0].problem or not packed[:-cut]
    behind, found = fed(packed + more, 7)
    assert found == data
    assert behind.problem


@given(st.binary(max_size=60), st.integers(1, 9))
def test_no_bytes_break_it(data: bytes, size: int) -> None:
    for packed in (data, gzip.compress(data)[:-3] + data):
        fed(packed, size)


@pytest.mark.parametrize(
    ("encoding", "parts", "why"),
    [
        ("gzip", [gzip.compress], "members"),
        ("gzip", [lambda data: gzip.compress(b"") + gzip.compress(data)], "members"),
        ("deflate", [raw], None),
        ("gzip", [lambda data: gzip.compress(data) + b"junk"], "to its end"),
    ],
    ids=["two members", "an empty member first", "raw deflate", "junk behind"],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_a_client_unpacks_of_an_answer_is_recorded(
    tmp_path: Path, encoding: str, parts: list[Callable[[bytes], bytes]], why: str | None, *, stream: bool
) -> None:
    (pack,) = parts

    def packs(request: Request) -> None:
        lines = [b"data: " + line + b"\n\n" for line in (SAMPLING, RESULT)] if stream else [RESULT[:9], RESULT[9:]]
        if json.loads(request.body)["params"]["name"] == "two":
            body = pack(lines[0]) + pack(lines[1])
        else:
            body = pack(b"".join(lines))
        kind = "text/event-stream" if stream else "application/json"
        request.answer(body, headers=f"content-encoding: {encoding}\r\ncontent-type: {kind}")

    name = "two" if why == "members" and pack is gzip.compress else "one"
    with through(tmp_path, ALLOWING, packs) as (proxy, _):
        proxy.post(call(name))
        found = proxy.spans()
    kinds = [(span.attributes[v.SPAN_KIND], span.attributes.get(v.METHOD)) for span in found]
    assert ("decision", "sampling/createMessage") in kinds or not stream
    outcomes = {span.attributes[v.METHOD]: span.attributes[v.OUTCOME] for span in found if v.OUTCOME in span.attributes}
    assert outcomes["tools/call"] == "ok"
    whys = [str(span.attributes[v.MALFORMED]) for span in found if span.attributes[v.SPAN_KIND] == "malformed"]
    assert [why in one for one in whys if why] == ([True] if why else [])
