from harness.following import Follower
from harness.gathering import Choice
from proxy import vocabulary as v
from tests.harness.wire import Wire, foreign, two_processes


def test_spans_one_by_one_give_the_calls_that_the_trace_has() -> None:
    from harness.convert import convert

    spans = two_processes()
    follower = Follower(Choice())
    calls = [call for span in [*spans, *spans, foreign()] for call in follower.take([span])] + follower.take(())
    expected = [call for call in convert(spans).tool_calls if call.outcome != "unanswered"]
    assert sorted((c.name or "", c.outcome or "", c.span_id or "") for c in calls) == sorted(
        (c.name or "", c.outcome or "", c.span_id or "") for c in expected
    )
    assert follower.open == 1


def test_a_refusal_that_waits_for_its_exchange_is_told_once() -> None:
    decision, exchange = Wire().call("evil", outcome="denied", decision="deny", ours=True).spans
    follower = Follower(Choice())
    assert follower.take([decision]) == []
    (call,) = follower.take([])
    assert (call.name, call.outcome) == ("mcp/crm/evil", "denied")
    assert follower.take([exchange]) == []
    assert follower.take([]) == []


def test_a_call_without_id_is_told_when_its_connection_ends() -> None:
    wire = Wire().unread('{"method":"tools/call","params":{"name":"x"}}', "allow", enforced=False, method="tools/call")
    follower = Follower(Choice())
    assert follower.take(wire.spans) == []
    assert follower.open == 1
    (call,) = follower.take(wire.closed().spans)
    assert (call.mcp_tool_name, call.outcome) == ("x", "unanswered")
    assert follower.open == 0


def test_spans_of_other_trials_are_left_out() -> None:
    spans = Wire(extra={v.TRIAL: 2}).call("x").spans
    assert Follower(Choice(trial=1)).take(spans) == []
    assert len(Follower(Choice(trial=2)).take(spans)) == 1
