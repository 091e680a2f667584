"""A content type is taken as the most careless client takes it, and what clients read otherwise is not let through."""

import codecs
import string
from email.message import Message
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.answertypes import answer_type
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import through
from tests.proxy.wires import ALLOWING, call, policy_of

SAMPLING = '{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}'
EVENT = f"data: {SAMPLING}\n\n"
DENYING = policy_of(client_requests={"sampling": "deny"})
ODD = [
    ("content-type: text/event-stream; charset=utf-7", "utf-7"),
    ("content-type: text/event-stream; charset=utf-16-le", "utf-16-le"),
    ("content-type: text/event-stream; Charset = 'cp037'", "cp037"),
    ("content-type: text/event-stream; charset*=us-ascii'en'utf-7", "utf-7"),
    ("content-type: text/event-stream\r\ncontent-type: x/y; charset=utf-7", "utf-7"),
    ("content-type: text/event-streamx", "utf-8"),
    ("content-type: Text/Event-Stream, x", "utf-8"),
    ("content-type: x/y; text/event-stream", "utf-8"),
    ("content-type: application/json\r\ncontent-type: text/event-stream", "utf-8"),
]


@pytest.mark.parametrize(("headers", "charset"), ODD)
def test_a_stream_that_only_some_clients_read_does_not_pass_a_policy_that_has_to_read_it(
    tmp_path: Path, headers: str, charset: str
) -> None:
    body = EVENT.encode(charset)
    with through(tmp_path, DENYING, lambda request: request.answer(body, headers=headers)) as (proxy, _):
        answer = proxy.post(call("ok"))
        assert answer.status == 502
        assert b"10002" in answer.body
        assert proxy.ask("GET", "/mcp", None, []).status == 502
        assert proxy.only("request").attributes[v.REFUSED_BY_US] is True


@pytest.mark.parametrize(("headers", "charset"), ODD)
def test_it_passes_as_it_is_without_such_a_policy_and_the_record_says_so(
    tmp_path: Path, headers: str, charset: str
) -> None:
    body = EVENT.encode(charset)
    with through(tmp_path, ALLOWING, lambda request: request.answer(body, headers=headers)) as (proxy, _):
        assert proxy.post(call("ok")).body == body
        whys = [str(span.attributes[v.MALFORMED]) for span in proxy.spans("malformed")]
    assert any("content type" in why for why in whys)


@pytest.mark.parametrize(
    "kind",
    [
        "text/event-stream",
        "Text/Event-Stream;charset=UTF-8",
        'text/event-stream; charset="utf-8"; x=y',
        "text/event-stream; charset=iso-8859-1",
        "text/event-stream;charset=windows-1252",
    ],
)
def test_a_stream_that_all_clients_read_alike_is_edited(tmp_path: Path, kind: str) -> None:
    def streams(request: Request) -> None:
        if SAMPLING.encode() not in request.body and b"tools/call" in request.body:
            request.answer(EVENT.encode(), headers=f"content-type: {kind}")
        else:
            request.answer(b"", "202 Accepted")

    with through(tmp_path, DENYING, streams) as (proxy, _):
        answer = proxy.post(call("ok"))
        assert answer.status == 200
        assert b"sampling" not in answer.body
        assert len([one for one in proxy.spans("decision") if one.attributes[v.DECISION] == "deny"]) == 1


NAMES = st.sampled_from(
    ["utf-8", "UTF8", "utf-7", "utf-16", "cp037", "shift_jis", "gbk", "latin-1", "cp1252", "iso2022_jp", "hz", "x", ""]
)
PARTS = st.sampled_from(
    ["charset=", "Charset =", "charset*=", "charset*0=", "; ", ";", ", ", "''", '"', "\\", " ", "a=b"]
)


@given(st.lists(st.one_of(NAMES, PARTS), max_size=8).map("".join))
def test_no_characters_that_a_client_finds_in_a_content_type_are_overlooked(rest: str) -> None:
    message = Message()
    message["content-type"] = f"text/event-stream; {rest}"
    try:
        found = message.get_content_charset()
        name = codecs.lookup(found or "utf-8").name
    except (LookupError, ValueError):
        return
    as_ascii = string.printable.encode().decode(name, "replace") == string.printable
    given = answer_type([(b"content-type", f"text/event-stream; {rest}".encode())])
    assert (as_ascii and name not in {"utf-7", "hz", "iso2022_jp", "gbk", "shift_jis"}) or given.unread
