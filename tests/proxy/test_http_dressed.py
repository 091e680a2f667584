"""A denied call does not pass as a form, under an encoding that is not undone, nor as a request for a tunnel."""

import gzip
import socket
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.httpwords import Headers
from proxy.refusals import DENIED, NOT_READABLE
from tests.proxy.deniedlines import code_of
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import JSON_TYPE, Client, through
from tests.proxy.wires import EVIL, call

EVIL_CALL = call().encode()
FORM = (b"content-type", b"application/x-www-form-urlencoded")
UTF_7 = EVIL_CALL.replace(b"{", b"+AHs-").replace(b'"', b"+ACI-")
DRESSED: dict[str, tuple[Headers, bytes]] = {
    "EBCDIC": ([(FORM[0], FORM[1] + b"; charset=cp037")], EVIL_CALL.decode().encode("cp037")),
    "UTF-7": ([(FORM[0], FORM[1] + b"; charset=utf-7")], UTF_7),
    "parts in EBCDIC": (
        [(b"content-type", b"multipart/form-data; boundary=x; charset=cp037")],
        EVIL_CALL.decode().encode("cp037"),
    ),
    "an encoding that nobody undoes": ([FORM, (b"content-encoding", b"br")], b"\x1b?"),
    "packed twice": ([FORM, (b"content-encoding", b"gzip, gzip")], gzip.compress(gzip.compress(EVIL_CALL))),
    "an underscore": ([FORM, (b"content_encoding", b"gzip")], gzip.compress(EVIL_CALL)),
    "behind other JSON": (
        [JSON_TYPE, (b"content-encoding", b"gzip")],
        gzip.compress(b'{"a":1}') + gzip.compress(EVIL_CALL),
    ),
}


@pytest.mark.parametrize("name", DRESSED)
def test_a_body_that_cannot_be_read_to_the_end_does_not_pass_as_nothing_of_mcp(tmp_path: Path, name: str) -> None:
    headers, body = DRESSED[name]
    with through(tmp_path, EVIL) as (proxy, upstream):
        answer = proxy.ask("POST", "/mcp", body, headers)
        assert (answer.status, code_of(answer.json)) == (415, NOT_READABLE)
        assert upstream.requests == []
        assert proxy.only("decision").attributes[v.DECISION] == "deny"


def test_a_form_that_is_turned_away_leaves_none_of_its_secrets_in_the_record(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        packed = gzip.compress(b"client_secret=hunter2")
        assert proxy.ask("POST", "/token", packed, [FORM, (b"content_encoding", b"gzip")]).status == 415
        assert upstream.requests == []
        assert proxy.only("decision").attributes[v.REQUEST] == ""


@pytest.mark.parametrize("charset", [b"utf-8", b"ISO-8859-1", b"windows-1252"])
def test_a_form_in_characters_that_clients_do_use_passes(tmp_path: Path, charset: bytes) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        proxy.ask("POST", "/token", b"grant_type=x", [(FORM[0], FORM[1] + b"; charset=" + charset)])
        assert [request.body for request in upstream.requests] == [b"grant_type=x"]


def test_without_a_policy_in_force_a_packed_form_passes_and_is_not_recorded(tmp_path: Path) -> None:
    with through(tmp_path) as (proxy, upstream):
        proxy.ask("POST", "/token", b"\x1b?", [FORM, (b"content-encoding", b"br")])
        assert len(upstream.requests) == 1
        assert proxy.spans() == []


def test_a_request_for_a_tunnel_is_refused_and_stops_nobody_else(tmp_path: Path) -> None:
    """A server that agrees to a tunnel and closes once had the proxy wait for ever, at full speed, for all clients."""

    def agrees_and_closes(request: Request) -> None:
        request.answer(b"{}")
        request.connection.shutdown(socket.SHUT_RDWR)

    with through(tmp_path, EVIL, agrees_and_closes) as (proxy, upstream):
        with Client(proxy.port) as client:
            client.send("CONNECT", "/mcp", None, [])
            answer = client.rest(client.head())
            assert (answer.status, code_of(answer.json)) == (400, DENIED)
        assert upstream.requests == []
        assert proxy.ask("GET", "/").status == 200
