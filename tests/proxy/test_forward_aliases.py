"""A server with a policy is not reached past it by a name that only a resolver knows."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.policy import Policy
from tests.proxy.forwardwires import Tunnel, forwarded
from tests.proxy.httpwires import JSON_TYPE, Client
from tests.proxy.wires import EVIL, call

NAME = "other.example"
EVIL_CALL = call().encode()


@pytest.fixture(autouse=True)
def _resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name leads to this machine."""
    look_up: Callable[..., object] = socket.getaddrinfo

    def resolve(host: "str | bytes | None", *rest: object, **more: object) -> object:
        return look_up("127.0.0.1" if host in (NAME, NAME.encode()) else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_a_request_by_another_name_of_a_server_with_a_policy_is_refused_and_recorded(tmp_path: Path) -> None:
    with forwarded(tmp_path, EVIL) as (proxy, upstream), Client(proxy.port) as client:
        client.send("POST", f"http://{NAME}:{upstream.port}/mcp", EVIL_CALL, [(b"Host", NAME.encode()), JSON_TYPE])
        assert client.rest(client.head()).status == 403
        assert upstream.requests == []
        client.close()
        span = proxy.only("unread")
        assert span.attributes[v.REFUSED_BY_US] is True
        assert span.attributes[v.UNREAD_HOST] == f"{NAME}:{upstream.port}"


def test_a_tunnel_by_another_name_is_refused_and_recorded(tmp_path: Path) -> None:
    with forwarded(tmp_path, EVIL) as (proxy, upstream):
        tunnel = Tunnel(proxy.port, f"{NAME}:{upstream.port}")
        tunnel.close()
        assert tunnel.opened == b"403"
        assert upstream.requests == []
        assert proxy.only("unread").attributes[v.REFUSED_BY_US] is True


def test_without_a_policy_in_force_another_name_is_another_host(tmp_path: Path) -> None:
    with forwarded(tmp_path) as (proxy, upstream):
        with Client(proxy.port) as client:
            client.send("POST", f"http://{NAME}:{upstream.port}/mcp", EVIL_CALL, [(b"Host", NAME.encode()), JSON_TYPE])
            assert client.rest(client.head()).status == 200
        tunnel = Tunnel(proxy.port, f"{NAME}:{upstream.port}")
        tunnel.close()
        assert tunnel.opened == b"200"
        assert proxy.spans() == []


@pytest.mark.parametrize(("policy", "status"), [(EVIL, 421), (None, 200)])
def test_a_host_inside_a_tunnel_that_is_another_server_of_ours_is_refused_under_a_policy(
    tmp_path: Path, policy: Policy | None, status: int
) -> None:
    with forwarded(tmp_path, policy, servers=("x=127.0.0.1", "y=other.test")) as (proxy, upstream):
        with Tunnel(proxy.port, proxy.target) as tunnel:
            tunnel.send("POST", "/mcp", call("ok").encode(), [(b"Host", b"Other.Test"), JSON_TYPE])
            assert tunnel.rest(tunnel.head()).status == status
        assert len(upstream.requests) == (status == 200)
