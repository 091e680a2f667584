import json
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.copies import likeness
from proxy import vocabulary as v
from proxy.mending import LIMIT, cut_text, exportable, mend_text, shortened
from proxy.spanread import spans_of
from proxy.spans import Attribute, Span, encode_span

PLAIN = Span("a" * 32, "b" * 16, "c" * 16, "tools/call x", 2, 1, 2, {v.SPAN_KIND: "request", v.SEQ: 3})
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=40)
LONG_TEXT = (
    st.builds(lambda piece, times: piece * times, st.text(min_size=1, max_size=6), st.integers(1, LIMIT)) | ANY_TEXT
)


def with_attributes(more: dict[str, Attribute]) -> Span:
    return replace(PLAIN, attributes={**PLAIN.attributes, **more})


def test_a_span_that_every_backend_takes_goes_as_it_is() -> None:
    assert exportable(PLAIN) is PLAIN


def test_half_of_a_surrogate_pair_is_mended_and_the_span_says_where() -> None:
    sent = exportable(replace(with_attributes({v.PARAMS: "a\udcffb"}), name="x\ud800"))
    assert sent.attributes[v.PARAMS] == "a\ufffdb"
    assert sent.name == "x\ufffd"
    assert sent.attributes[v.EXPORT_MENDED] == f"{v.PARAMS},name"


def test_an_integer_past_64_bits_is_sent_as_its_digits() -> None:
    sent = exportable(with_attributes({v.MONO: 2**63, v.RESULT_MONO: -(2**63)}))
    assert sent.attributes[v.MONO] == str(2**63)
    assert sent.attributes[v.RESULT_MONO] == -(2**63)
    assert sent.attributes[v.EXPORT_MENDED] == v.MONO


def test_a_payload_past_64_kib_is_cut_at_a_character_and_says_so_with_its_whole_size_and_digest() -> None:
    text = "é" * LIMIT
    whole = with_attributes({v.TOOL_RESULT: text, v.payload_bytes("result"): 2 * LIMIT})
    sent = exportable(whole)
    assert sent.attributes[v.TOOL_RESULT] == "é" * (LIMIT // 2)
    assert sent.attributes[v.payload_truncated("result")] is True
    assert sent.attributes[v.payload_bytes("result")] == 2 * LIMIT
    assert sent.attributes[v.EXPORT_CUT] == v.TOOL_RESULT


def test_a_long_text_that_is_no_payload_is_cut_too() -> None:
    sent = exportable(replace(with_attributes({v.OUTPUT_MESSAGES: "m" * LIMIT * 2}), message="e" * LIMIT * 2))
    assert len(str(sent.attributes[v.OUTPUT_MESSAGES])) == len(sent.message) == LIMIT
    assert sent.attributes[v.EXPORT_CUT] == f"{v.OUTPUT_MESSAGES},status"


@settings(max_examples=150, deadline=None)
@given(LONG_TEXT, LONG_TEXT, st.integers(), ANY_TEXT)
def test_whatever_is_sent_can_be_encoded_and_is_a_copy_of_what_the_file_has(
    result: str, name: str, number: int, other: str
) -> None:
    whole = replace(
        with_attributes({v.TOOL_RESULT: result, v.METHOD: name, v.DECISION_REASON: other, v.TRIAL: number}),
        name=name,
    )
    sent = exportable(whole)
    for text in (sent.name, *(value for value in sent.attributes.values() if isinstance(value, str))):
        assert len(text.encode()) <= LIMIT
    assert all(isinstance(n, bool) or not isinstance(n, int) or -(2**63) <= n < 2**63 for n in sent.attributes.values())
    ours, theirs = likeness(whole), likeness(sent)
    assert theirs.same(ours)
    assert ours.same(theirs)
    assert not theirs.better(ours)
    assert ours.better(theirs) == (sent is not whole)
    assert exportable(sent) is sent


@settings(max_examples=100, deadline=None)
@given(LONG_TEXT, st.integers(1, 40), ANY_TEXT)
@example('\\"', 20, "")
@example("\udcff\u2028", 30, "x")
def test_a_long_line_that_is_shortened_before_it_is_decoded_gives_the_span_that_the_whole_line_gives(
    text: str, times: int, other: str
) -> None:
    whole = with_attributes({v.REQUEST: text * times, v.METHOD: other, v.PARAMS: other})
    line = encode_span(whole, "1")
    (read,) = spans_of(json.loads(shortened(line)), "here")
    assert exportable(read) == exportable(whole)


def test_a_line_of_many_mebibytes_becomes_short() -> None:
    line = encode_span(with_attributes({v.REQUEST: '{"a": "\\\\"}' * 1_000_000, v.PARAMS: "p"}), "1")
    assert len(shortened(line)) < 500_000


@pytest.mark.parametrize("text", ["", "a" * LIMIT, "é" * (LIMIT // 2)])
def test_a_text_that_fits_stays_the_very_same(text: str) -> None:
    assert cut_text(text) is text
    assert mend_text(text) is text
