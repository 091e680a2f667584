"""Approvals over HTTP: the post of a held call waits for its answer, and a client that goes away gets nothing sent."""

import json
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.deskline import DeskLine, ask_desk
from proxy.waiting import Waiting
from tests.proxy.forwardwires import WAYS, Way, forwarded
from tests.proxy.httpwires import Client, through
from tests.proxy.test_desk import DEADLINE, Serving
from tests.proxy.test_grants import grants, one
from tests.proxy.test_holding import APPROVING, PAY
from tests.proxy.wires import call, policy_of

SESSION = [(b"mcp-session-id", b"s")]


def test_a_post_with_a_grant_of_the_file_goes_on_once(tmp_path: Path) -> None:
    granted = grants(tmp_path, one(id="g", expires_at="2100-01-01T00:00:00Z"))
    with through(tmp_path, APPROVING, grants=granted) as (proxy, upstream):
        assert proxy.post(PAY).json == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
        refused = proxy.post(PAY)
        assert (refused.status, "was used already" in json.dumps(refused.json)) == (200, True)
        assert [request.body for request in upstream.requests] == [PAY.encode()]


@pytest.mark.parametrize("way", WAYS)
def test_the_same_through_the_forward_proxy(tmp_path: Path, way: Way) -> None:
    granted = grants(tmp_path, one(id="g", expires_at="2100-01-01T00:00:00Z"))
    with forwarded(tmp_path, APPROVING, grants=granted, way=way) as (proxy, upstream):
        assert proxy.post(PAY).json == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
        refused = proxy.post(PAY)
        assert (refused.status, "was used already" in json.dumps(refused.json)) == (200, True)
        assert [request.body for request in upstream.requests] == [PAY.encode()]


def test_a_post_waits_until_an_operator_answers_and_others_go_on_meanwhile(tmp_path: Path) -> None:
    desk = Serving(str(tmp_path / "desk"))
    try:
        with through(tmp_path, APPROVING) as (proxy, upstream), Client(proxy.port) as client:
            proxy.app.waiting = Waiting(None, DeskLine(desk.folder))
            client.send("POST", "/mcp", PAY.encode(), [])
            code = desk.code()
            (held,) = desk.server.desk.tickets
            assert proxy.post(call("read", id_text="2")).json == {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}
            assert "done" in ask_desk(desk.folder, {"answer": "grant", "id": held, "code": code})
            assert client.rest(client.head()).json == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
            assert len(upstream.requests) == 2
            proxy.app.waiting.close()
    finally:
        desk.close()


def test_a_post_whose_client_goes_away_or_cancels_is_never_sent(tmp_path: Path) -> None:
    desk = Serving(str(tmp_path / "desk"))
    cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    try:
        with through(tmp_path, APPROVING) as (proxy, upstream):
            proxy.app.waiting = Waiting(None, DeskLine(desk.folder))
            with Client(proxy.port) as client:
                client.send("POST", "/mcp", PAY.encode(), SESSION)
                desk.code()
            while not desk.shown.get(timeout=DEADLINE).startswith("over"):
                pass
            with Client(proxy.port) as client, Client(proxy.port) as other:
                client.send("POST", "/mcp", PAY.encode(), SESSION)
                desk.code()
                other.send("POST", "/mcp", cancelled.encode(), SESSION)
                other.rest(other.head())
                assert client.rest(client.head()).status == 400
            proxy.app.waiting.close()
            decisions = [span.attributes[v.DECISION_REASON] for span in proxy.spans("decision")]
            assert ["went away" in str(decisions[0]), "cancelled it" in str(decisions[1])] == [True, True]
            assert [request.body for request in upstream.requests] == [cancelled.encode()]
    finally:
        desk.close()


def test_a_post_that_nobody_answers_is_refused_after_its_wait(tmp_path: Path) -> None:
    with through(tmp_path, policy_of(rules=[{"approve": "mcp/x/pay", "wait": "1ms"}])) as (proxy, upstream):
        assert "nobody can be asked" in json.dumps(proxy.post(PAY).json)
        assert upstream.requests == []
