"""What is put between an agent and its servers: proxies that it starts, or proxies that listen."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.scenario import load_scenario
from harness.targetfile import Remote
from harness.targets.context import Context
from harness.targets.fixtures import fixture_offers
from harness.targets.proxied import prepare
from harness.targets.running import ports_of, reachable
from tests.harness.runs import SCENARIOS, write_scenario


@pytest.mark.parametrize(
    ("ports", "kind", "port"),
    [(None, "stdio", None), ({}, "bridge", "0"), ({"echo": 9001}, "bridge", "9001")],
)
def test_a_proxy_listens_where_the_agent_cannot_start_it(
    ports: Mapping[str, int] | None, kind: str, port: str | None, tmp_path: Path
) -> None:
    scenario = load_scenario(write_scenario(tmp_path), fixture_offers())
    folder = tmp_path / "private"
    folder.mkdir()
    context = Context("run", scenario.id, 1)
    [upstream] = prepare(scenario, context, tmp_path / "spans", folder, ports=ports).upstreams
    words = list(upstream.command)
    assert words[words.index("proxy") + 1] == kind
    assert upstream.listens == (ports is not None)
    assert (words[words.index("--port") + 1] if "--port" in words else None) == port


def test_an_agent_without_a_way_to_its_servers_gets_none_of_them_and_no_policy() -> None:
    scenario = load_scenario(SCENARIOS / "security" / "outbound_mail_enforced.yaml", fixture_offers())
    remote = Remote("chat", "http://h/")
    assert reachable(scenario, remote).servers == {}
    assert ports_of(remote) is None
    proxied = Remote("chat", "http://h/", ports={})
    assert reachable(scenario, proxied) is scenario
    assert ports_of(proxied) == {}
