"""Stdio in front of a server over HTTP that packs its answers although it is asked for plain ones."""

import gzip
import json
import zlib
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.refusals import SERVER_ENDED
from tests.proxy.connectwires import connected
from tests.proxy.deniedlines import code_of
from tests.proxy.httpupstream import Request
from tests.proxy.wires import call

RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
EVENT = b"data: " + RESULT + b"\n\n"
PACKED = gzip.compress(RESULT, mtime=0)
JSON_BODY, EVENTS = "application/json", "text/event-stream"


@pytest.mark.parametrize(
    ("encoding", "kind", "body"),
    [
        ("gzip", JSON_BODY, PACKED),
        ("X-Gzip", JSON_BODY, PACKED),
        ("deflate", JSON_BODY, zlib.compress(RESULT)),
        ("gzip", EVENTS, gzip.compress(EVENT, mtime=0)),
        ("identity", JSON_BODY, RESULT),
    ],
    # Not by the bytes: gzip writes the time into them, and where two workers name a test otherwise nothing is run.
    ids=["gzip", "x-gzip", "deflate", "events", "plain"],
)
def test_an_answer_that_can_be_unpacked_is(tmp_path: Path, encoding: str, kind: str, body: bytes) -> None:
    headers = f"content-type: {kind}\r\ncontent-encoding: {encoding}"
    with connected(tmp_path, lambda request: request.answer(body, headers=headers)) as one:
        one.send(call("ok"))
        assert one.read() == json.loads(RESULT)
        assert [span.attributes[v.OUTCOME] for span in one.spans("request")] == ["ok"]


@pytest.mark.parametrize(
    ("encoding", "kind", "body"),
    [
        ("br", JSON_BODY, RESULT),
        ("br", EVENTS, EVENT),
        ("gzip, gzip", JSON_BODY, gzip.compress(PACKED, mtime=0)),
        ("gzip", JSON_BODY, RESULT),
        ("gzip", JSON_BODY, PACKED[:-1]),
        ("gzip", JSON_BODY, PACKED + PACKED),
        ("gzip", JSON_BODY, b""),
    ],
    ids=["other", "other-stream", "twice", "not-packed", "cut", "two", "bomb"],
)
def test_of_one_that_cannot_be_nothing_goes_on_and_the_failure_is_ours(
    tmp_path: Path, encoding: str, kind: str, body: bytes
) -> None:
    headers = f"content-type: {kind}\r\ncontent-encoding: {encoding}"
    body = body or gzip.compress(b" " * (65 * 1024 * 1024), 1)
    with connected(tmp_path, lambda request: request.answer(body, headers=headers)) as one:
        one.send(call("ok"))
        answer = one.read()
        assert (answer["id"], code_of(answer)) == (1, SERVER_ENDED)
        (span,) = one.spans("request")
    assert (span.attributes[v.OUTCOME], span.attributes[v.REFUSED_BY_US]) == ("protocol_error", True)


def test_an_http_error_keeps_its_status_however_it_is_encoded(tmp_path: Path) -> None:
    def fails(request: Request) -> None:
        request.answer(b"??", "429 Too Many Requests", "content-type: application/json\r\ncontent-encoding: br")

    with connected(tmp_path, fails) as one:
        one.send(call("ok"))
        assert code_of(one.read()) == SERVER_ENDED
        (span,) = one.spans("request")
    assert span.attributes[v.HTTP_STATUS] == 429
