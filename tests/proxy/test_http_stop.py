"""What the proxy over HTTP answers and records of requests once it is told to stop."""

from pathlib import Path
from threading import Event

import pytest

from proxy import vocabulary as v
from proxy.httpwords import Headers
from proxy.refusals import DENIED, SERVER_ENDED
from proxy.spans import JSON
from tests.proxy.deniedlines import code_of, ids_answered
from tests.proxy.httpupstream import WAIT, Request, echo
from tests.proxy.httpwires import JSON_TYPE, Client, Proxy, through
from tests.proxy.wires import ALLOWING, EVIL, call

SESSIONS: dict[str, Headers] = {"session": [(b"mcp-session-id", b"s")], "none": []}


def refused_calls(proxy: Proxy) -> list[tuple[JSON, ...]]:
    names = (v.ID_TEXT, v.OUTCOME, v.ERROR_TYPE, v.REFUSED_BY_US)
    return [tuple(span.attributes.get(name) for name in names) for span in proxy.spans("request")]


@pytest.mark.parametrize("session", SESSIONS)
def test_a_call_that_is_under_way_is_answered_under_its_id_and_recorded_as_refused_by_us(
    tmp_path: Path, session: str
) -> None:
    held = Event()

    def hold(request: Request) -> None:
        held.set()
        assert request.gone()

    with through(tmp_path, ALLOWING, hold) as (proxy, _), Client(proxy.port) as client:
        client.send("POST", "/mcp", call("ok", id_text='"a"').encode(), [JSON_TYPE, *SESSIONS[session]])
        assert held.wait(WAIT)
        proxy.running.call(proxy.app.stop)
        answer = client.rest(client.head())
        assert (answer.status, answer.values("connection"), code_of(answer.json)) == (503, ["close"], SERVER_ENDED)
        assert ids_answered([answer.json]) == ["a"]
        assert client.file.read() == b""
        assert refused_calls(proxy) == [('"a"', "unanswered", str(SERVER_ENDED), True)]


@pytest.mark.parametrize("session", SESSIONS)
def test_a_call_on_a_kept_connection_after_that_is_refused_and_does_not_reach_the_server(
    tmp_path: Path, session: str
) -> None:
    stopped = Event()

    def stop(proxy: Proxy) -> None:
        proxy.app.stop()
        stopped.set()

    with through(tmp_path, ALLOWING, echo) as (proxy, upstream), Client(proxy.port) as client:
        client.send("GET", "/", None, [])
        assert client.rest(client.head()).status == 202
        proxy.running.call(lambda: stop(proxy))
        assert stopped.wait(WAIT)
        client.send("POST", "/mcp", call("ok", id_text="7").encode(), [JSON_TYPE, *SESSIONS[session]])
        answer = client.rest(client.head())
        assert (answer.status, answer.values("connection"), code_of(answer.json)) == (503, ["close"], SERVER_ENDED)
        assert ids_answered([answer.json]) == [7]
        assert client.file.read() == b""
        assert refused_calls(proxy) == [("7", "protocol_error", str(SERVER_ENDED), True)]
        assert [request.method for request in upstream.requests] == ["GET"]


def test_what_policy_denies_after_that_is_denied_as_ever(tmp_path: Path) -> None:
    with through(tmp_path, EVIL) as (proxy, upstream):
        proxy.running.call(proxy.app.stop)
        assert code_of(proxy.post(call("evil")).json) == DENIED
        assert [(one[1], one[3]) for one in refused_calls(proxy)] == [("denied", True)]
        assert upstream.requests == []


def test_a_stream_that_is_asked_for_after_that_is_refused_under_no_id(tmp_path: Path) -> None:
    with through(tmp_path, ALLOWING) as (proxy, upstream):
        proxy.running.call(proxy.app.stop)
        answer = proxy.ask("GET")
        assert (answer.status, ids_answered([answer.json])) == (503, [None])
        assert (refused_calls(proxy), upstream.requests) == ([], [])
