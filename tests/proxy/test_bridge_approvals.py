"""Approvals over both bridges: only a call with a grant of its own reaches the server."""

import json
from functools import partial
from pathlib import Path

from proxy.waiting import Waiting
from tests.proxy.bridgewires import bridged
from tests.proxy.connectwires import connected
from tests.proxy.test_grants import grants, one
from tests.proxy.test_holding import APPROVING, PAY
from tests.proxy.wires import call

LATER = "2100-01-01T00:00:00Z"


def test_over_http_in_front_of_stdio_a_granted_call_goes_on_once(tmp_path: Path) -> None:
    with bridged(tmp_path, policy=APPROVING) as bridge:
        bridge.app.waiting = Waiting(grants(tmp_path, one(id="g", expires_at=LATER)))
        session = bridge.open()
        assert b"refused" not in bridge.post(PAY, session).body
        again = bridge.post(call("pay", id_text="2", arguments='{"amount": 5}'), session)
        assert b"was used already" in again.body
        asked = [message for server in bridge.children.servers for message in server.messages]
    assert [message["id"] for message in asked if message.get("method") == "tools/call"] == [1]


def test_over_stdio_in_front_of_http_a_granted_call_goes_on_once(tmp_path: Path) -> None:
    with connected(tmp_path, policy=APPROVING) as connection:
        connection.begin()
        waiting = Waiting(grants(tmp_path, one(id="g", expires_at=LATER)))
        connection.relay.hold_calls(waiting, partial(connection.edge.deliver, connection._loop))
        connection.send(PAY)
        assert "refused" not in json.dumps(connection.read())
        connection.send(call("pay", id_text="2", arguments='{"amount": 5}'))
        assert "was used already" in json.dumps(connection.read())
        bodies = [request.body for request in connection.upstream.requests]
    assert [body for body in bodies if b"tools/call" in body] == [PAY.encode()]
