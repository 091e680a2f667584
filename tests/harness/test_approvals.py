"""Approvals in a run, shown by what the server's own database holds afterwards: only what is granted is sent, once."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.assertions.assertion import parse_assertion
from harness.commands.validate import describe_scenario
from harness.convert import convert
from harness.evidence import Evidence
from harness.scenario import ScenarioError, load_scenario
from proxy import vocabulary as v
from proxy.held import call_digest
from proxy.redact import Redactor
from proxy.spanread import read_spans
from proxy.spans import JSON, Attribute, Span
from proxy.waiting import Waiting
from tests.harness.runs import run, write_scenario
from tests.proxy.test_grants import grants, one
from tests.proxy.test_holding import APPROVING
from tests.proxy.wires import Wire, call

LATER, EARLIER = "2100-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
MAIL: dict[str, JSON] = {"to": ["a@b.example"], "subject": "s", "body": "b"}
SEND: dict[str, JSON] = {"call": "mcp/mail/send_email", "arguments": MAIL, "expect_error": True}
GRANT: dict[str, JSON] = {"id": "g", "tool": "mcp/mail/send_email", "arguments": MAIL, "expires_at": LATER}


def scenario(folder: Path, grants: JSON, steps: list[JSON], sent: int = 1, name: str = "in_process") -> Path:
    """A scenario of this name, which is also the agent's transport where it is one."""
    transport = "stdio" if name == "stdio" else "in_process"
    (folder / f"{name}.agent.json").write_text(json.dumps({"transport": transport, "steps": steps}))
    return write_scenario(
        folder,
        id=name,
        servers={"mail": {"fixture": "mail"}},
        policy={"rules": [{"approve": "mcp/mail/send_email", "wait": "60s" if grants else "20ms"}]},
        grants=grants,
        agent={"scripted": f"{name}.agent.json"},
        assertions=[
            {"type": "approval_required", "action": "send_email"},
            {"type": "state", "server": "mail", "query": "SELECT count(*) FROM outbox", "equals": [[sent]]},
        ],
    )


CASES: dict[str, tuple[JSON, list[JSON], int, str]] = {
    "in_process": ([GRANT], [SEND], 1, ""),
    "stdio": ([GRANT], [SEND], 1, ""),
    "other": ([{**GRANT, "arguments": {**MAIL, "body": "c"}}], [SEND], 0, "for other arguments"),
    "twice": ([GRANT], [SEND, SEND], 1, "was used already"),
    "expired": ([{**GRANT, "expires_at": EARLIER}], [SEND], 0, "has expired"),
    "revoked": ([{**GRANT, "revoked_at": EARLIER}], [SEND], 0, "was revoked"),
    "early": ([{**GRANT, "granted_at": LATER}], [SEND], 0, "for a later time"),
    "nobody": (None, [SEND], 0, "nobody can be asked"),
}
"""Grants, steps, how many messages the server sent, and why the last call was refused, "" where it was not."""


def test_only_a_call_with_a_grant_of_its_own_reaches_the_server(tmp_path: Path) -> None:
    paths = [scenario(tmp_path, *CASES[name][:3], name) for name in CASES]
    ran = run(paths, tmp_path)
    assert len(ran.result.trials) == len(CASES)
    for result in ran.result.trials:
        name, (_, _, _, why) = result.scenario, CASES[result.scenario]
        assert result.verdict.status == "completed", result
        findings = {finding.id: finding.result for finding in result.verdict.findings}
        assert findings.pop("state_unexplained", "pass") == "pass"
        assert findings == {"approval_required": "fail" if why else "pass", "state": "pass"}, name
        trace = convert(read_spans([ran.folder / name / "1" / "spans"], print))
        assert trace.gaps == ()
        *_, last = trace.tool_calls
        approvals = [event for event in trace.events if event.type == "approval"]
        if why:
            assert last.outcome == "denied"
            assert why in (last.decision_reason or "")
        else:
            (event,) = approvals
            assert (event.fields["id"], event.fields["source"], event.fields["call"]) == ("g", "file", last.span_id)
            assert last.decision == "allow"
        assert len(approvals) == CASES[name][2]


def test_grants_that_are_wrong_or_that_no_rule_asks_for_are_told_by_line_and_field(tmp_path: Path) -> None:
    path = scenario(tmp_path, [{**GRANT, "tool": "mcp/mail/send"}, {**GRANT, "expires_at": "soon"}], [])
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert "grants[1].expires_at" in str(caught.value)
    path = write_scenario(tmp_path, id="other", grants=[GRANT])
    with pytest.raises(ScenarioError, match="no rule of the policy asks for an approval"):
        load_scenario(path)
    unknown = scenario(tmp_path, [{**GRANT, "tool": "mcp/post/send"}], [])
    with pytest.raises(ScenarioError, match="no server 'post'"):
        load_scenario(unknown)


def test_validate_says_that_nobody_can_approve_a_call_of_a_scenario(tmp_path: Path) -> None:
    assert "nobody can approve" in describe_scenario(load_scenario(scenario(tmp_path, None, [])))
    assert "nobody can approve" not in describe_scenario(load_scenario(scenario(tmp_path, [GRANT], [])))


def forged(span: Span, connection: bool) -> Span:
    """A span that somebody wrote into the folder of the record: an approval, of a connection there is or of none."""
    attributes = {key: value for key, value in span.attributes.items() if connection or key != v.CONNECTION}
    fields = {
        "tool": "mcp/x/pay",
        "arguments_sha256": call_digest("mcp/x/pay", {}),
        "call": span.span_id,
        "id": "mine",
    }
    said: dict[str, Attribute] = {v.EVENT_TYPE: "approval", v.EVENT_FIELDS: json.dumps(fields), v.SPAN_KIND: "event"}
    return replace(span, span_id="f" * 16, name="approval", attributes={**attributes, **said})


def test_an_approval_that_an_agent_writes_into_the_record_lets_nothing_pass(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    wire.negotiate("2025-11-25")
    wire.client(call("pay"))
    wire.server('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
    wire.end()
    spans = wire.spans()
    (request,) = (span for span in spans if span.name == "tools/call pay")
    required = parse_assertion({"type": "approval_required", "action": "pay"})

    def judged(*more: Span) -> tuple[str, str]:
        finding = required.find(Evidence(convert([*spans, *more]), True, ("x",), frozenset({"x"})))
        return finding.result, finding.reason

    assert judged()[0] == "fail"
    assert judged(forged(request, connection=False))[0] == "fail"
    assert "is not the proxy's" in judged(forged(request, connection=False))[1]
    result, reason = judged(forged(request, connection=True))
    assert result == "not_run"
    assert "were not written by its proxy" in reason


def test_a_call_with_a_secret_in_it_is_approved_in_the_record_that_has_a_mark_in_its_place(tmp_path: Path) -> None:
    wire = Wire(tmp_path, APPROVING)
    wire.relay.session.recorder.redactor = Redactor(["hunter2hunter2"], bytes(32), ("PASSWORD",))
    wire.negotiate("2025-11-25")
    secret: JSON = {"amount": 5, "with": "hunter2hunter2"}
    wire.relay.hold_calls(Waiting(grants(tmp_path, one(arguments=secret, expires_at=LATER))), wire.passed)
    wire.client(call("pay", arguments=json.dumps(secret)))
    wire.server('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
    assert b"hunter2" in wire.to_server
    wire.end()
    required = parse_assertion({"type": "approval_required", "action": "pay"})
    trace = convert(wire.spans())
    assert "hunter2" not in str(trace)
    assert call_digest("mcp/x/pay", secret) not in Path(wire.file.path).read_text()
    finding = required.find(Evidence(trace, True, ("x",), frozenset({"x"})))
    assert finding.result == "pass", finding
