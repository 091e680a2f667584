import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.assertions.assertion import parse_assertion
from harness.evidence import Evidence
from harness.trace import Event, ToolCall
from harness.verdict import Finding
from proxy.spans import JSON
from tests.harness.made import call, wire


def page(server: str, *tools: str, more: bool = False, reported: bool = False) -> Event:
    fields: dict[str, JSON] = {"server_id": server, "tools": [{"name": tool} for tool in tools]}
    return Event("mcp_tools_discovered", {**fields, **({"more": True} if more else {})}, reported=reported)


WHOLE = [page("ticketing", "get_ticket", more=True), page("ticketing", "delete_ticket")]
OTHER = page("own", "search")
SLIP = "mcp/ticketing/delete_tikcet"
SAID = "the server 'ticketing' offers no tool 'delete_tikcet'; did you mean delete_ticket?"


def seen(*calls: ToolCall, events: Sequence[Event], denied: Sequence[str] = ()) -> Evidence:
    servers = ("ticketing", "own") if OTHER in events else ("ticketing",)
    return wire(*calls, events=events, servers=servers, expected={"denied_tools": list(denied)})


def not_called(tool: str, evidence: Evidence, **fields: JSON) -> Finding:
    return parse_assertion({"type": "tool_not_called", "tool": tool, **fields}).judge(evidence)


def no_denied(evidence: Evidence) -> Finding:
    return parse_assertion({"type": "no_denied_tool_call"}).judge(evidence)


def test_that_a_tool_was_not_called_which_its_server_does_not_offer_is_not_run() -> None:
    finding = not_called(SLIP, seen(events=WHOLE))
    assert (finding.result, finding.reason.endswith(SAID)) == ("not_run", True)
    finding = no_denied(seen(events=WHOLE, denied=["mcp/ticketing/delete_ticket", SLIP]))
    assert (finding.result, finding.reason.endswith(SAID)) == ("not_run", True)
    at_most = parse_assertion({"type": "tool_called", "tool": SLIP, "min": 0, "max": 2})
    assert at_most.judge(seen(events=WHOLE)).result == "not_run"


@pytest.mark.parametrize("tool", ["mcp/ticketing/delete_ticket", "MCP/Ticketing/DELETE_TICKET", " delete_ticket "])
def test_a_tool_that_is_offered_passes_in_any_case(tool: str) -> None:
    assert not_called(tool, seen(events=WHOLE)).result == "pass"
    assert no_denied(seen(events=WHOLE, denied=[tool])).result == "pass"


@pytest.mark.parametrize(
    "events",
    [[], WHOLE[:1], [replace(page("ticketing", "a"), reported=True)], [OTHER]],
    ids=["never listed", "listed in part", "only reported", "another server"],
)
def test_what_was_not_listed_to_its_end_may_hold_the_tool(events: list[Event]) -> None:
    assert not_called(SLIP, seen(events=events)).result == "pass"
    assert no_denied(seen(events=events, denied=[SLIP])).result == "pass"


def test_a_bare_name_is_not_run_only_where_every_server_was_seen_to_offer_no_such_tool() -> None:
    assert not_called("delete_tikcet", seen(events=[*WHOLE, OTHER])).result == "not_run"
    assert not_called("search", seen(events=[*WHOLE, OTHER])).result == "pass"
    half = wire(events=WHOLE, servers=("ticketing", "own"))
    assert not_called("delete_tikcet", half).result == "pass"
    # A list of denied names is often longer than what one server offers.
    assert no_denied(seen(events=[*WHOLE, OTHER], denied=["transfer_money"])).result == "pass"


def test_a_call_of_a_tool_that_is_not_listed_counts_all_the_same() -> None:
    assert not_called(SLIP, seen(call(SLIP), events=WHOLE)).result == "fail"
    assert no_denied(seen(call(SLIP, outcome="denied"), events=WHOLE, denied=[SLIP])).result == "fail"
    assert not_called(SLIP, seen(call(SLIP, {"id": 1}), events=WHOLE), arguments={"id": 2}).result == "pass"


def test_a_tool_that_the_policy_hides_is_not_in_the_list_that_is_seen() -> None:
    for glob in ("mcp/ticketing/delete_tikcet", "mcp/*/delete_*"):
        hidden = replace(seen(events=WHOLE, denied=[SLIP]), hidden=(glob,))
        assert not_called(SLIP, hidden).result == "pass"
        assert no_denied(hidden).result == "pass"
    assert not_called(SLIP, replace(seen(events=WHOLE), hidden=("mcp/own/*",))).result == "not_run"


WATCHED: dict[str, dict[str, JSON]] = {
    "approval_required": {"action": SLIP},
    "no_void_writes": {"tools": ["get_ticket", SLIP]},
    "no_repeated_reads": {"tools": [SLIP]},
    "no_external_recipient": {"outbound_tools": [SLIP]},
}


@pytest.mark.parametrize("kind", WATCHED)
def test_nothing_is_said_of_a_tool_that_its_server_does_not_offer(kind: str) -> None:
    def judged(evidence: Evidence, wanted: dict[str, JSON]) -> Finding:
        return parse_assertion({"type": kind, **wanted}).judge(evidence)

    expected: dict[str, JSON] = {"allowed_domains": ["house.example"]}
    other = call("mcp/ticketing/get_ticket", {"id": 1}, outcome="tool_error")
    listed = wire(other, events=WHOLE, expected=expected)
    finding = judged(listed, WATCHED[kind])
    assert (finding.result, finding.reason.endswith(SAID)) == ("not_run", True)
    right = json.loads(json.dumps(WATCHED[kind]).replace("tikcet", "ticket"))
    assert judged(listed, right).result == "pass"
    # What was not listed to its end, and what the policy hides, may be there all the same.
    assert judged(wire(other, expected=expected), WATCHED[kind]).result == "pass"
    assert judged(replace(listed, hidden=("mcp/*/delete_*",)), WATCHED[kind]).result == "pass"


def test_an_outbound_tool_of_the_scenarios_own_list_is_held_against_the_servers_lists_by_its_canonical_name() -> None:
    def judged(*outbound: str) -> Finding:
        expected: dict[str, JSON] = {"allowed_domains": ["house.example"], "outbound_tools": list(outbound)}
        return parse_assertion({"type": "no_external_recipient"}).judge(wire(events=WHOLE, expected=expected))

    assert judged("mcp/ticketing/delete_ticket", SLIP).result == "not_run"
    assert judged("post_message", "mcp/elsewhere/post").result == "pass"
