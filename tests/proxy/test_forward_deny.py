"""The deny list over HTTP again, by whole URL, in a tunnel, and in a tunnel over TLS that is read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.refusals import DENIED
from tests.proxy import test_http_deny as http
from tests.proxy.deniedlines import code_of
from tests.proxy.forwardwires import WAYS, Way, forwarded
from tests.proxy.httpwires import JSON_TYPE
from tests.proxy.wires import EVIL, call

LIST: list[Callable[[Path], None]] = [
    http.test_no_denied_call_reaches_the_server_and_each_is_answered_under_its_id,
    http.test_headers_that_say_what_the_body_says_pass,
    http.test_a_packed_body_is_refused_with_policy_in_force_and_its_call_is_in_the_record,
    http.test_an_array_is_judged_element_by_element_in_the_protocol_that_has_them,
    http.test_a_refusal_in_the_new_era_is_complete_and_an_error_is_400,
    http.test_what_is_no_message_of_mcp_passes_with_policy_in_force_and_is_not_recorded,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("test", LIST, ids=lambda test: test.__name__.removeprefix("test_"))
def test_the_deny_list_over_http_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way, test: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(http, "through", partial(forwarded, way=way))
    test(tmp_path)


@pytest.mark.parametrize("way", ["url", "tunnel"])
def test_what_has_no_one_reading_does_not_reach_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    monkeypatch.setattr(http, "through", partial(forwarded, way=way))
    http.test_what_has_no_one_reading_never_reaches_the_server(tmp_path)


@pytest.mark.parametrize("way", ["url", "tunnel"])
def test_headers_and_encodings_that_say_something_else_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    monkeypatch.setattr(http, "through", partial(forwarded, way=way))
    for name in http.HEADERS:
        (tmp_path / name).mkdir()
        http.test_a_header_that_says_something_else_than_the_body_is_refused(tmp_path / name, name)
    for encoding in ("utf-16", "utf-8-sig"):
        (tmp_path / encoding).mkdir()
        http.test_a_body_in_another_encoding_is_refused_and_recorded_as_the_call_that_it_is(
            tmp_path / encoding, encoding
        )


@pytest.mark.parametrize("way", WAYS)
def test_a_denied_call_in_chunks_that_cut_its_name_does_not_reach_the_server(tmp_path: Path, way: Way) -> None:
    with forwarded(tmp_path, EVIL, way=way) as (proxy, upstream), proxy.client() as client:
        for body in (call().encode(), call("ok").encode()):
            proxy.send(client, "POST", "/mcp", None, [JSON_TYPE, (b"transfer-encoding", b"chunked")])
            for at in range(0, len(body), 3):
                part = body[at : at + 3]
                client.socket.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            client.socket.sendall(b"0\r\n\r\n")
            assert client.rest(client.head()).status == 200
        assert [request.body for request in upstream.requests] == [call("ok").encode()]


@pytest.mark.parametrize(
    "host",
    [
        "LOCALHOST",
        "localhost.",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "127.9.9.9",
    ],
)
def test_a_server_is_the_same_however_its_host_is_spelled(tmp_path: Path, host: str) -> None:
    with forwarded(tmp_path, EVIL, servers=("x=localhost",)) as (proxy, upstream), proxy.client("url") as client:
        client.send("POST", f"http://{host}:{upstream.port}/mcp", call().encode(), [JSON_TYPE])
        assert code_of(client.rest(client.head()).json) == DENIED
        assert upstream.requests == []
        assert proxy.only("decision").attributes[v.SERVER_ID] == "x"


def test_the_url_decides_which_server_it_is_and_the_host_header_gives_way(tmp_path: Path) -> None:
    with forwarded(tmp_path, EVIL) as (proxy, upstream), proxy.client("url") as client:
        for body in (call(), call("ok")):
            url = f"http://127.0.0.1:{upstream.port}/mcp"
            client.send("POST", url, body.encode(), [JSON_TYPE, (b"Host", b"elsewhere.example")])
            client.rest(client.head())
        (request,) = upstream.requests
        assert request.values("host") == [f"127.0.0.1:{upstream.port}"]
        assert [one.attributes[v.DECISION] for one in proxy.spans("decision")] == ["deny", "allow"]
