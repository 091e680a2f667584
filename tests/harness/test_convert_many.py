"""Spans of several processes, copies and exports are one trace, in the order of cause."""

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.convert import convert
from harness.facts import ConvertError
from proxy import vocabulary as v
from proxy.spanread import spans_of
from proxy.spans import Span, encode_span
from tests.harness.wire import Wire, foreign, two_processes


def test_calls_of_several_processes_come_in_the_order_of_cause() -> None:
    calls = convert(two_processes()).tool_calls
    assert [call.mcp_tool_name for call in calls] == ["read", "write", "evil"] * 3 + ["a", "b", "read"]
    assert [call.seq for call in calls] == sorted(call.seq for call in calls)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_shuffled_repeated_and_mixed_spans_give_the_same_trace(seed: int) -> None:
    random = Random(seed)
    spans = two_processes()
    expected = convert(spans)
    mixed = [*spans, *random.choices(spans, k=10), *(foreign(number) for number in range(5))]
    random.shuffle(mixed)
    assert convert(iter(mixed)) == expected


def test_two_equal_calls_stay_two() -> None:
    assert len(convert(Wire().call("x").call("x").spans).tool_calls) == 2


def test_two_different_spans_of_one_identity_are_an_error() -> None:
    spans = Wire().call("x").spans
    for name, value in ((v.OUTCOME, "tool_error"), (v.TOOL_ARGUMENTS, "{}"), (v.MONO, 1)):
        changed = replace(spans[-1], attributes={**spans[-1].attributes, name: value})
        for order in ([*spans, changed], [changed, *spans]):
            with pytest.raises(ConvertError, match=spans[-1].span_id):
                convert(order)


def test_a_mended_or_cut_export_is_the_same_span_and_the_file_wins() -> None:
    half = '{"t":"\ud800","n":36893488147419103232}'
    spans = Wire().call("x", half).closed().spans
    expected = convert(spans)
    mended = [
        replace(
            span,
            service="exporter",
            attributes={
                "backend.added": "1",
                **{
                    key: value.replace("\ud800", "\ufffd") if isinstance(value, str) else value
                    for key, value in span.attributes.items()
                },
            },
        )
        for span in spans
    ]
    cut = [
        replace(
            span,
            attributes={
                **span.attributes,
                **(
                    {v.TOOL_ARGUMENTS: '{"t', v.payload_truncated("arguments"): True}
                    if v.TOOL_ARGUMENTS in span.attributes
                    else {}
                ),
            },
        )
        for span in spans
    ]
    for copy in (mended, cut):
        assert convert(copy) != expected
        for order in ([*spans, *copy], [*copy, *spans]):
            assert convert(order) == expected


def test_a_run_and_a_trial_are_picked_out() -> None:
    spans: list[Span] = []
    names = Wire().names
    for run, trial in (("r1", 1), ("r1", 2), ("r2", 1)):
        wire = Wire(connection=f"{run}.{trial}", names=names, extra={v.RUN_ID: run, v.TRIAL: trial})
        spans += wire.initialize().call(f"{run}.{trial}").spans
    assert [call.mcp_tool_name for call in convert(spans, run_id="r1", trial=2).tool_calls] == ["r1.2"]
    assert len(convert(spans, run_id="r1").tool_calls) == 2
    assert convert(spans, run_id="r3").coverage.tool_calls == "none"


def test_what_is_missing_from_the_record_is_said() -> None:
    trace = convert(Wire().opened().initialize().closed(recorded=9, dropped=2).spans, notes=["a torn line"])
    assert trace.gaps == (
        "2 spans of a connection to crm could not be written",
        "6 of 9 spans of a connection to crm are missing",
        "a torn line",
    )
    wire = Wire()
    wire.span("novelty", "x", {}, 1)
    assert "novelty" in " ".join(convert(wire.spans).gaps)


def test_the_trace_is_the_same_after_a_way_through_the_file_format() -> None:
    spans = two_processes()
    again = [found for span in spans for found in spans_of(json.loads(encode_span(span, "1")), "line")]
    assert convert(again) == convert(spans)


def test_a_time_that_no_calendar_has_is_an_error() -> None:
    span = Wire().call("x").spans[-1]
    with pytest.raises(ConvertError, match="no time"):
        convert([replace(span, start_ns=10**30)])
