"""The line of a large answer, made piece by piece, is the line that is made in one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import largeline
from proxy.largeline import large_line
from proxy.record import Identity, Recorder, Stamp
from proxy.redact import Redactor
from proxy.session import Session

TOKEN = "7" * 32
KEY = bytes(range(32))
SECRET = "hunter2-hunter2"


def owed(method: str, answer: bytes, secrets: tuple[str, ...] = ()) -> tuple[str, str, Recorder]:
    """The line of an answer to a request, in one and in pieces."""
    digits = iter(range(1, 1000))
    session = Session(
        Identity("x", "trusted", "http", "c"), None, "1.0", lambda size: f"{next(digits):0{size}x}", Stamp(1, 1)
    )
    recorder = session.recorder
    recorder.redactor = Redactor(secrets, KEY) if secrets else None
    session.line(
        "client", b'{"jsonrpc":"2.0","id":1,"method":"%s","params":{"name":"t"}}' % method.encode(), Stamp(2, 2)
    )
    session.line("server", answer, Stamp(3, 3))
    session.server.catch_up()
    (due,) = session.connection.owed
    whole = due.line(recorder)
    pieces = large_line(due, recorder, TOKEN)
    return whole, pieces if isinstance(pieces, str) else pieces.decode(), recorder


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("size", [1, 7, 1024])
def test_it_is_the_same_for_all_results(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(largeline, "_AT_ONCE", size)

    @given(JSONS, st.sampled_from(["tools/call", "prompts/list"]), st.booleans(), st.booleans())
    def same(value: object, method: str, fails: bool, plain: bool) -> None:
        text = json.dumps({"content": value, "isError": fails}, ensure_ascii=plain)
        answer = f'{{"jsonrpc":"2.0","id":1,"result":{text}}}'.encode("utf-8", "surrogatepass")
        whole, pieces, _ = owed(method, answer)
        assert pieces == whole

    same()


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"result":[1]}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff\xfe"},"result":{"isError":true}}',
        b'{"result":{"isError":"true"},"jsonrpc":"2.0","id":1}',
    ],
)
def test_it_is_the_same_for_answers_that_are_odd(answer: bytes) -> None:
    whole, pieces, _ = owed("tools/call", answer)
    assert pieces == whole


@pytest.mark.parametrize("size", [1, 64, 512])
def test_a_secret_is_found_wherever_the_pieces_are_cut(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(largeline, "_AT_ONCE", size)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in SECRET)

    @given(st.integers(0, 3000), st.integers(0, 3000), st.sampled_from([SECRET, escaped, json.dumps(escaped)[1:-1]]))
    def gone(before: int, behind: int, form: str) -> None:
        answer = f'{{"jsonrpc":"2.0","id":1,"result":{{"text":"{"x" * before}{form}{"y" * behind}"}}}}'.encode()
        whole, pieces, recorder = owed("tools/call", answer, (SECRET,))
        assert pieces == whole
        assert recorder.redactor is not None
        assert not recorder.redactor.finds(pieces)

    gone()
