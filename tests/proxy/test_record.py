import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.ledger import RandomHex
from proxy.record import Identity, Recorder, Stamp, parse_traceparent, payload
from proxy.spanread import spans_of
from proxy.spans import Attribute, encode_attribute

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize("form", ["00-{}-{}-01", "00-{}-{}-00", "cc-{}-{}-01-what-comes"])
def test_a_valid_traceparent_gives_trace_and_parent(form: str) -> None:
    assert parse_traceparent(form.format(TRACE, PARENT)) == (TRACE, PARENT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01-more",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}g-{PARENT}-01",
        f" 00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-0x",
        f"00-{TRACE}-{PARENT}-01\n",
        f"00-{'٣' * 32}-{PARENT}-01",
    ],
)
def test_a_malformed_traceparent_gives_nothing(text: str) -> None:
    assert parse_traceparent(text) is None


@given(st.text())
def test_no_text_makes_reading_a_traceparent_fail(text: str) -> None:
    assert parse_traceparent(text) is None


def recorder() -> Recorder:
    digits = iter(range(1, 1000))
    return Recorder(Identity("x", "trusted", "http", "c"), "1.0", lambda size: f"{next(digits):0{size}x}")


attributes = st.dictionaries(
    st.text(min_size=1, max_size=5).map(lambda key: f"test.{key}"),
    st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    max_size=4,
)


@given(attributes, st.text(), st.none() | st.text(), st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_line_reads_back_as_the_span_it_was_made_of(
    given_attributes: dict[str, Attribute], name: str, failure: str | None, start: int, end: int
) -> None:
    made = recorder()
    place = made.place(f"00-{TRACE}-{PARENT}-01")
    encoded = [encode_attribute(key, value) for key, value in {v.SPAN_KIND: "event", **given_attributes}.items()]
    line = made.line(place, name, 1, (start, end), encoded, failure)
    assert "\n" not in line
    (span,) = spans_of(json.loads(line), "here")
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE, place.span_id, PARENT)
    assert (span.name, span.start_ns, span.end_ns, span.message) == (name, start, end, failure or "")
    assert span.status == (0 if failure is None else 2)
    assert span.links == ((made.trace_id, made.connection_span),)
    assert {key: span.attributes[key] for key in given_attributes} == given_attributes
    assert span.attributes[v.NETWORK_TRANSPORT] == "tcp"
    assert v.RUN_ID not in span.attributes


def test_a_payload_past_the_cap_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.record.CAP", 5)
    attributes = json.loads(f"[{','.join(payload(v.PARAMS, 'params', 'aaaaé'))}]")
    values = {attribute["key"]: attribute["value"] for attribute in attributes}
    assert values.pop(v.PARAMS) == {"stringValue": "aaaa\udcc3"}
    assert values.pop(v.payload_bytes("params")) == {"intValue": "5"}
    assert values.pop(v.payload_sha256("params")) == {"stringValue": hashlib.sha256(b"aaaa\xc3").hexdigest()}
    assert values == {v.payload_truncated("params"): {"boolValue": True}}


def test_a_connection_never_gets_the_same_random_digits_twice() -> None:
    new_id = RandomHex()
    made = [new_id(16) for _ in range(500)] + [new_id(32) for _ in range(500)]
    assert {len(one) for one in made} == {16, 32}
    assert len({half for one in made for half in (one[:16], one[16:]) if half}) == 1500


def test_seq_counts_from_one() -> None:
    made = recorder()
    opened, closed = made.opened(Stamp(1, 2)), made.closed(Stamp(1, 2), Stamp(3, 4), {})
    seqs = [next(spans_of(json.loads(line), "here")).attributes[v.SEQ] for line in (opened, closed)]
    assert seqs == [1, 2]
