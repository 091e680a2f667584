"""A large answer that is read without its long texts says what it says when it is read whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import fromserver, largeline, largemessage
from proxy.frames import read_loose
from proxy.largemessage import LargeMessage, read_large
from proxy.members import FrameError
from tests.proxy.test_largeline import SECRET, owed

LONG = st.text(st.sampled_from('ab"\\\n/ué€😀\ud800'), min_size=60, max_size=400)
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=9) | LONG,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9) | LONG, inner, max_size=3),
    max_leaves=8,
)
ODD = st.sampled_from([b'"', b"\\", b"\\\\", b'\\"', b"\\x", b"\\u12", b"{", b"}", b",", b"\xff", b"\xe2\x82", b"\x00"])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largemessage, "_WINDOW", 24)
    monkeypatch.setattr(largemessage, "_PIECE", 40)
    monkeypatch.setattr(fromserver, "LARGE", 0)


def spelled(value: object, last: bool, plain: bool) -> bytes:
    result = json.dumps({"content": value, "isError": True}, ensure_ascii=plain)
    text = (
        f'{{"result": {result}, "jsonrpc":"2.0","id":1}}' if last else f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'
    )
    return text.encode("utf-8", "surrogatepass")


def same(raw: bytes) -> bool:
    """Whether it was read as large; if so, as it is read whole."""
    line = read_large(raw)
    if line is None:
        return False
    (message,), (whole,) = line.messages, read_loose(raw).messages
    assert isinstance(message, LargeMessage)
    assert len(message.text) < len(raw)
    assert (message.id_text, message.id_key, message.method) == (whole.id_text, whole.id_key, whole.method)
    assert message.source == whole.source
    assert message.fields.keys() == whole.fields.keys()
    for name in whole.fields:
        assert message.field_text(name) == whole.field_text(name)
        assert str(message.bytes_of(name), "utf-8", "surrogateescape") == whole.field_text(name)
    result, told = message.fields["result"], whole.fields["result"]
    assert isinstance(result, dict)
    assert isinstance(told, dict)
    assert result.get("isError") == told.get("isError")
    return True


@given(VALUES, st.booleans(), st.booleans())
def test_it_is_the_same_message(value: object, last: bool, plain: bool) -> None:
    same(spelled(value, last, plain))


@given(LONG, st.booleans(), st.booleans())
def test_one_long_text_is_taken_out(text: str, last: bool, plain: bool) -> None:
    assert same(spelled([{"type": "text", "text": text * 4}], last, plain))


@given(LONG, st.lists(st.tuples(ODD, st.integers(0, 2000)), min_size=1, max_size=3), st.booleans())
def test_what_is_no_json_is_not_read_either(text: str, odd: list[tuple[bytes, int]], plain: bool) -> None:
    raw = spelled([text * 4], last=False, plain=plain)
    for part, place in odd:
        at = place % len(raw)
        raw = raw[:at] + part + raw[at:]
    try:
        read_loose(raw)
    except FrameError:
        assert read_large(raw) is None
    else:
        same(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":1,"error":{"code":1,"message":"%s"}}',
        b'{"id":1,"result":{"resultType":"input_required","a":"%s"}}',
        b'{"method":"a","id":1,"result":{"a":"%s"}}',
        b'[{"id":1,"result":{"a":"%s"}}]',
        b'{"id":1,"result":"%s"}',
    ],
)
def test_what_is_no_plain_result_is_read_whole(raw: bytes) -> None:
    assert read_large(raw % (b"x" * 1000)) is None


@given(LONG, st.booleans(), st.sampled_from(["tools/call", "prompts/list"]))
def test_its_line_is_the_one_that_is_made_of_it_whole(text: str, plain: bool, method: str) -> None:
    raw = spelled([text * 4, 1], last=False, plain=plain)
    whole, pieces, _ = owed(method, raw)
    assert pieces == whole
    assert read_large(raw) is not None


@given(st.integers(0, 3000), st.integers(0, 3000), st.sampled_from(["x", "é", "\U0001f600"]))
def test_a_secret_in_it_is_found_wherever_the_pieces_are_cut(before: int, behind: int, letter: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(largeline, "_AT_ONCE", 64)
        raw = spelled([letter * before + SECRET + letter * behind], last=False, plain=False)
        whole, pieces, _ = owed("tools/call", raw, (SECRET,))
    assert pieces == whole
    assert SECRET not in pieces
