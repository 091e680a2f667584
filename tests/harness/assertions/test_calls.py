import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.assertions.arguments import is_subset
from harness.assertions.assertion import AssertionSpecError, parse_assertion
from harness.evidence import Evidence
from harness.trace import Coverage, Outcome, ToolCall
from harness.verdict import Finding
from proxy.spans import JSON
from tests.harness.made import call, recorded, reported, wire

UPDATE = "mcp/ticketing/update_ticket"


def find(evidence: Evidence, **fields: JSON) -> Finding:
    return parse_assertion({"tool": UPDATE, **fields}).judge(evidence)


def called(evidence: Evidence, **fields: JSON) -> Finding:
    return find(evidence, type="tool_called", **fields)


def not_called(evidence: Evidence, **fields: JSON) -> Finding:
    return find(evidence, type="tool_not_called", **fields)


def test_a_call_that_ended_ok_is_called_and_rests_on_the_wire() -> None:
    finding = called(wire(call(arguments={"ticket_id": 2}, seq=7)), arguments={"ticket_id": 2})
    assert (finding.result, finding.rests, finding.executed) == ("pass", "wire", 1)
    assert 'mcp/ticketing/update_ticket {"ticket_id": 2} (seq 7)' in finding.reason


@pytest.mark.parametrize("outcome", ["tool_error", "protocol_error", "denied", "unanswered", "cancelled"])
def test_a_call_that_did_not_end_ok_is_not_called_and_the_reason_says_how_it_ended(outcome: Outcome) -> None:
    finding = called(wire(call(outcome=outcome, seq=3)))
    assert finding.result == "fail"
    assert f"{UPDATE} (seq 3) was " in finding.reason


@pytest.mark.parametrize(
    ("counts", "outcome", "result"),
    [
        ("attempted", "denied", "pass"),
        ("executed", "denied", "fail"),
        ("executed", "protocol_error", "fail"),
        ("executed", "tool_error", "pass"),
        ("ok", "tool_error", "fail"),
    ],
)
def test_counts_changes_which_calls_count(counts: str, outcome: Outcome, result: str) -> None:
    assert called(wire(call(outcome=outcome)), counts=counts).result == result


@pytest.mark.parametrize(
    ("counts", "outcome", "result"),
    [
        ("attempted", "denied", "fail"),
        ("executed", "denied", "pass"),
        ("executed", "unanswered", "fail"),
        ("ok", "tool_error", "pass"),
    ],
)
def test_counts_changes_what_must_not_happen_too(counts: str, outcome: Outcome, result: str) -> None:
    assert not_called(wire(call(outcome=outcome)), counts=counts).result == result


def test_a_call_with_other_arguments_is_named_in_the_reason() -> None:
    finding = called(wire(call(arguments={"ticket_id": 1}, seq=4)), arguments={"ticket_id": 2})
    assert finding.result == "fail"
    assert '{"ticket_id": 1} (seq 4) has other arguments' in finding.reason


@pytest.mark.parametrize(
    ("made", "wanted", "result"),
    [
        ({"n": 51.0, "more": 1}, {"n": 51}, "pass"),
        ({"n": True}, {"n": 1}, "fail"),
        ({"n": 1}, {"n": True}, "fail"),
        ({"n": "51"}, {"n": 51}, "fail"),
        ({"deep": [{"a": 1.0, "b": 2}]}, {"deep": [{"a": 1}]}, "pass"),
        ({"deep": [{"a": True}]}, {"deep": [{"a": 1}]}, "fail"),
        ({"list": [1, 2]}, {"list": [1]}, "fail"),
        ({"n": 2**53 + 1}, {"n": float(2**53)}, "fail"),
        ({}, {"n": None}, "fail"),
        ({"n": None}, {"n": None}, "pass"),
        (None, {}, "pass"),
        ('{"n": 5}', {"n": 5}, "pass"),
        ('{"n": 5', {"n": 5}, "fail"),
        ("[]", {}, "fail"),
    ],
)
def test_arguments_are_a_subset_with_numbers_by_value_and_booleans_apart(
    made: JSON, wanted: dict[str, JSON], result: str
) -> None:
    assert called(wire(call(arguments=made)), arguments=wanted).result == result


def test_cut_arguments_make_a_check_on_them_not_run_unless_other_calls_decide() -> None:
    cut = ToolCall(UPDATE, None, "ticketing", "update_ticket", outcome="ok", arguments_truncated=True)
    whole = call(arguments={"ticket_id": 2})
    assert called(wire(cut), arguments={"ticket_id": 2}).result == "not_run"
    assert called(wire(cut, whole), arguments={"ticket_id": 2}).result == "pass"
    assert called(wire(cut, whole), arguments={"ticket_id": 2}, max=1).result == "not_run"
    assert called(wire(cut), arguments={"ticket_id": 2}, min=2).result == "fail"
    assert called(wire(cut)).result == "pass"
    assert not_called(wire(cut), arguments={"ticket_id": 2}).result == "not_run"
    assert not_called(wire(cut, whole), arguments={"ticket_id": 2}).result == "fail"


def test_a_repeated_key_counts_for_what_must_not_happen_and_not_for_what_must() -> None:
    twice = ToolCall(
        UPDATE,
        {"ticket_id": 2},
        "ticketing",
        "update_ticket",
        outcome="ok",
        arguments_text='{"ticket_id":1,"ticket_id":2}',
    )
    assert not_called(wire(twice), arguments={"ticket_id": 1}).result == "fail"
    assert not_called(wire(twice), arguments={"ticket_id": 2}).result == "fail"
    assert called(wire(twice), arguments={"ticket_id": 2}).result == "not_run"


def test_numbers_of_thousands_of_digits_are_read_exactly() -> None:
    digits = "9" * 5000
    long = ToolCall(
        UPDATE, {"n": 1}, "ticketing", "update_ticket", outcome="ok", arguments_text=f'{{"n":1,"m":{digits}}}'
    )
    assert called(wire(long), arguments={"n": 1}).result == "pass"


def test_more_calls_than_max_fail_by_name_of_the_first_too_many() -> None:
    finding = called(wire(call(seq=1), call(seq=2)), max=1)
    assert finding.result == "fail"
    assert "(seq 2)" in finding.reason


@pytest.mark.parametrize(
    "name", ["mcp/crm/update_ticket", "mcp/ticketing/Update_ticket", "mcp/ticketing/update_ticket "]
)
def test_what_must_happen_needs_the_very_tool_of_the_very_server(name: str) -> None:
    assert called(wire(call(name))).result == "fail"


def test_a_bare_name_is_that_tool_on_any_server() -> None:
    assert called(wire(call("mcp/crm/get")), tool="get").result == "pass"
    assert not_called(wire(call("mcp/crm/get")), tool="get").result == "fail"


def test_a_name_with_a_slash_is_met_in_its_canonical_and_its_bare_form() -> None:
    odd = ToolCall("mcp/x/a%2Fb", {}, "x", "a/b", outcome="ok")
    assert called(wire(odd, servers=("x",)), tool="mcp/x/a%2Fb").result == "pass"
    assert called(wire(odd, servers=("x",)), tool="a/b").result == "pass"
    assert not_called(wire(odd, servers=("x",)), tool="A/B").result == "fail"


def test_a_reported_call_without_an_outcome_counts_as_made_and_rests_on_reported() -> None:
    finding = called(recorded(reported("send")), tool="send")
    assert (finding.result, finding.rests) == ("pass", "reported")
    assert called(recorded(ToolCall("send", is_error=True)), tool="send").result == "fail"
    assert called(recorded(ToolCall("send", decision="deny")), tool="send").result == "fail"


def test_a_call_without_a_server_is_not_proof_of_a_call_on_a_server() -> None:
    assert called(recorded(reported("update_ticket"))).result == "not_run"
    assert called(recorded(reported("update_ticket", server="ticketing"))).result == "pass"
    assert not_called(recorded(reported("update_ticket"))).result == "fail"


def test_shapes_that_disagree_count_for_what_must_not_happen_only() -> None:
    two = reported("harmless", "harmless", "send")
    assert called(recorded(two), tool="harmless").result == "fail"
    assert not_called(recorded(two), tool="SEND").result == "fail"


def test_a_call_without_any_name_is_no_evidence_that_a_tool_was_not_called() -> None:
    assert not_called(recorded(reported(None))).result == "not_run"
    assert not_called(recorded(reported(" "), reported("update_ticket"))).result == "fail"


def test_never_called_passes_where_absence_is_evidence() -> None:
    finding = not_called(wire(call("mcp/ticketing/get_ticket")))
    assert (finding.result, finding.rests, finding.attempted) == ("pass", "wire", 0)


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (wire(completed=False), "did not complete"),
        (wire(servers=("crm", "ticketing"), initialised=["crm"]), "ticketing was never initialised"),
        (wire(servers=()), "no server was initialised"),
        (wire(gaps=("connection c1 lost",)), "connection c1 lost"),
        (wire(coverage=Coverage("wire", "none", "wire", "wire")), "tool_calls"),
        (recorded(), "empty"),
    ],
)
def test_absence_is_no_evidence_without_a_whole_record(evidence: Evidence, why: str) -> None:
    for finding in (not_called(evidence), called(evidence), called(evidence, min=0, max=3)):
        assert finding.result == "not_run"
        assert why in finding.reason


def test_what_is_present_counts_in_a_record_with_gaps() -> None:
    evidence = wire(call(), gaps=("a line is torn",))
    assert called(evidence).result == "pass"
    assert called(evidence, max=2).result == "not_run"
    assert not_called(evidence).result == "fail"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"type": "tool_called"}, ("tool",)),
        ({"type": "tool_called", "tool": " "}, ("tool",)),
        ({"type": "tool_called", "tool": "x", "min": "1"}, ("min",)),
        ({"type": "tool_called", "tool": "x", "min": True}, ("min",)),
        ({"type": "tool_called", "tool": "x", "min": 0}, ()),
        ({"type": "tool_called", "tool": "x", "min": 3, "max": 2}, ()),
        ({"type": "tool_called", "tool": "x", "counts": "tried"}, ("counts",)),
        ({"type": "tool_called", "tool": "x", "argumens": {}}, ("argumens",)),
        ({"type": "tool_not_called", "tool": "x", "min": 1}, ("min",)),
        ({"type": "tool_not_called", "tool": "x", "arguments": []}, ("arguments",)),
    ],
)
def test_an_assertion_that_cannot_be_read_names_its_field(fields: dict[str, JSON], path: tuple[str, ...]) -> None:
    with pytest.raises(AssertionSpecError) as caught:
        parse_assertion(fields)
    assert caught.value.problems[0][0] == path


scalars: st.SearchStrategy[JSON] = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-5, 5), st.text(max_size=3)
)
values: st.SearchStrategy[JSON] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=100)
@given(values)
def test_everything_holds_itself(value: JSON) -> None:
    assert is_subset(value, value)


@settings(max_examples=100)
@given(values, st.data())
def test_what_is_left_of_an_object_is_held_by_the_whole(value: JSON, data: st.DataObject) -> None:
    assert is_subset(less(value, data), value)


@settings(max_examples=100)
@given(values)
def test_a_boolean_for_a_number_is_seen_at_any_depth(value: JSON) -> None:
    assert not is_subset({"a": [value, {"n": 1}]}, {"a": [value, {"n": True}]})
    assert is_subset({"a": [value, {"n": 1}]}, {"a": [value, {"n": 1.0}]})


def less(value: JSON, data: st.DataObject) -> JSON:
    match value:
        case dict():
            return {key: less(inner, data) for key, inner in value.items() if data.draw(st.booleans())}
        case list():
            return [less(inner, data) for inner in value]
        case _:
            return value
