"""What one proxy learns from the lists of tools that pass it over HTTP."""

import json
from pathlib import Path

import pytest

from proxy.listed import Listed
from proxy.policy import Policy
from proxy.refusals import NOT_READABLE
from tests.proxy.deniedlines import code_of
from tests.proxy.httpupstream import Request, echo
from tests.proxy.httpwires import through
from tests.proxy.wires import call, policy_of

DENYING = policy_of(rules=[{"deny": "mcp/x/gone"}])
PLACE: dict[str, object] = {"type": "object", "properties": {"zip": {"type": "integer", "x-mcp-header": "Zip"}}}
SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "to": {"type": "string"}, "place": PLACE},
}
LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def listing(request: Request) -> None:
    """Answer tools/list with a tool that has headers, and all else as it comes."""
    if b"tools/list" not in request.body:
        echo(request)
        return
    tools = [{"name": "ok", "inputSchema": SCHEMA}]
    request.answer(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode())


def test_a_deny_rule_for_a_tool_that_is_not_listed_is_told_of_once_for_all_sessions(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with through(tmp_path, DENYING, listing) as (proxy, _):
        for session in (b"a", b"b"):
            proxy.post(LIST, (b"mcp-session-id", session))
    said = capfd.readouterr().err
    assert said.splitlines() == ["wiretrap: the server x lists no tool that these rules deny: mcp/x/gone"]


GIVEN = json.dumps({"region": "us", "to": "eu", "place": {"zip": 7}})


@pytest.mark.parametrize(
    ("header", "value", "known", "status"),
    [
        (b"mcp-param-region", b"us", True, 200),
        (b"mcp-param-region", b"=?base64?dXM=?=", True, 200),
        (b"mcp-param-zip", b"7.0", True, 200),
        # Another argument says so, which is not the one that the header repeats.
        (b"mcp-param-region", b"eu", True, 400),
        (b"mcp_param_region", b"eu", True, 400),
        (b"mcp-param-zip", b"us", True, 400),
        (b"mcp-param-region", b"eu", False, 200),
        # The schema does not name it.
        (b"mcp-param-to", b"eu", True, 200),
        (b"mcp-param-to", b"cn", True, 400),
        (b"mcp-param-region", b"cn", False, 400),
    ],
)
def test_a_header_is_held_against_the_argument_that_the_schema_says_it_repeats(
    tmp_path: Path, header: bytes, value: bytes, known: bool, status: int
) -> None:
    with through(tmp_path, DENYING, listing) as (proxy, upstream):
        if known:
            proxy.post(LIST, (b"mcp-session-id", b"another client"))
        answer = proxy.post(call("ok", arguments=GIVEN), (header, value))
        assert answer.status == status
        if status != 200:
            assert code_of(answer.json) == NOT_READABLE
        assert len(upstream.requests) == known + (status == 200)


def test_a_header_for_an_argument_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with through(tmp_path, DENYING, listing) as (proxy, _):
        proxy.post(LIST)
        assert proxy.post(call("ok", arguments='{"to":"us"}'), (b"mcp-param-region", b"us")).status == 400


def test_what_a_later_list_no_longer_says_is_forgotten() -> None:
    listed = Listed("x", None, lambda text: None)
    for schema, knows in ((SCHEMA, True), ({"type": "object"}, False), ({"x-mcp-header": "no"}, False)):
        listed.take(json.dumps({"id": 1, "result": {"tools": [{"name": "ok", "inputSchema": schema}]}}))
        assert bool(listed.mirrors) is knows
    listed.take("no JSON with x-mcp-header")
    assert not listed.mirrors


def test_a_policy_that_is_read_again_has_its_own_rules_looked_out_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("rules: [{deny: mcp/x/other}]\n", encoding="utf-8")
    with through(tmp_path, Policy(), listing) as (proxy, _):
        proxy.post(LIST)
        proxy.running.call(lambda: proxy.app.reload(str(file)))
        proxy.post(LIST)
    assert capfd.readouterr().err.count("mcp/x/other") == 1
