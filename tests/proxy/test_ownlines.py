import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy import ownlines
from proxy import vocabulary as v
from proxy.lineshapes import LONGEST
from proxy.ownlines import FIRST, MOST_KINDS, MOST_SHAPES, OwnLines
from proxy.record import Identity, Recorder, Stamp
from proxy.spanread import spans_of
from proxy.spans import Attribute, Span, SpanError, encode_attribute, encode_span

LINK = ("a" * 32, "c" * 16)
SPAN = Span(
    "a" * 32,
    "b" * 16,
    "",
    "tools/call x",
    2,
    5,
    7,
    {v.CONNECTION: "c1", v.TRIAL: 1, v.SPAN_KIND: "request", "n": 3, "t": True, "text": 'a "{[\\ \u00e4\ud800'},
    links=(LINK,),
    service="wiretrap/crm",
)
texts = st.text(st.characters(), max_size=12)
attributes = st.dictionaries(
    st.sampled_from([v.CONNECTION, v.TRIAL, "n", "t", "text", "x"]),
    st.one_of(texts, st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False)),
    max_size=4,
)
PIECES = ['"', "\\", ",", "{", "}", "[", "]", ":", " ", "0", "-", "\u0661", "null", "\\u0661", "\n", '"kind":3',
    '{"key":"n","value":', '{"stringValue":"x"}}', '{"intValue":"7"}}', '{"intValue":7}}', '{"boolValue":1}}',
    '"attributes":[]', ',"links":[]', ',"status":{"code":2,"message":"m"}', f'{{"key":"{v.SPAN_KIND}",']  # fmt: skip


def taught() -> OwnLines:
    """A reader that has read as many lines as it learns nothing of."""
    own = OwnLines()
    line = encode_span(SPAN, "1").encode()
    for _ in range(FIRST):
        assert own.span(line) == SPAN
    assert own.shapes(SPAN.name) == ()
    return own


def slowly(line: str) -> list[Span] | None:
    """What the reader of all OTLP/JSON makes of a line; None where it refuses it."""
    try:
        return list(spans_of(json.loads(line.encode("utf-8", "surrogatepass")), "here"))
    except (ValueError, SpanError):
        return None


def kinds(span: Span) -> list[type[Attribute]]:
    return [type(value) for value in span.attributes.values()]


def recorded() -> Iterator[str]:
    """Lines as a proxy writes them."""
    recorder = Recorder(
        Identity("crm", "internal", "stdio", "c1", run_id="r", trial=2), "1", lambda digits: "a" * digits
    )
    yield recorder.opened(Stamp(1, 2))
    for place in (recorder.place(None), recorder.place(f"00-{'b' * 32}-{'c' * 16}-01")):
        said = [encode_attribute("gen_ai.tool.call.result", '{"text": "\u2028 \\n"}'), encode_attribute("n", 3)]
        for before in (None, LINK):
            facts = recorder.fact("request", Stamp(3, 4), "client_to_server", {"x": True})
            yield recorder.line(place, "tools/call x", 2, (2, 4), [*facts, *said], before=before)
            yield recorder.line(
                place, "tools/call x", 2, (2, 4), [*facts, *said], failure="no such tool", before=before
            )
    recorder.also({"mcp.session.id": "s1"})
    yield recorder.closed(Stamp(1, 2), Stamp(3, 4), {"x": "y"})


def test_every_line_that_a_proxy_records_is_of_the_shape() -> None:
    own = taught()
    for line in recorded():
        span = own.span(f"{line}\n".encode())
        assert span is not None
        assert [span] == slowly(line)
        assert [kinds(span)] == [kinds(one) for one in slowly(line) or ()]


@settings(max_examples=120)
@given(attributes, attributes, st.data())
def test_a_line_is_read_as_the_reader_of_all_otlp_reads_it_or_not_at_all(
    common: dict[str, Attribute], rest: dict[str, Attribute], data: st.DataObject
) -> None:
    own = taught()
    own.span(encode_span(SPAN, "1").encode())
    span = Span("a" * 32, "b" * 16, "", "x", 1, 0, 9, {**common, v.SPAN_KIND: "event", **rest}, links=(LINK,))
    line = encode_span(span, "1")
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(line)))
        end = min(len(line), start + data.draw(st.sampled_from([0, 0, 1, 2, 30])))
        line = line[:start] + data.draw(st.sampled_from(PIECES)) + line[end:]
    found = own.span(line.encode("utf-8", "surrogatepass"))
    if found is not None:
        assert [found] == slowly(line)
        assert [kinds(found)] == [kinds(one) for one in slowly(line) or ()]


values: dict[type[Attribute], st.SearchStrategy[Attribute]] = {
    str: st.one_of(texts, st.sampled_from(["", "7", 'a"}},{"key":"n', "\\", "x" * (LONGEST + 1)])),
    int: st.integers(0, 10**19 - 1),
    bool: st.booleans(),
}


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from(["n", "t", "text", "x", 'q"']), st.sampled_from([str, int, bool]), min_size=1),
    st.data(),
)
def test_lines_that_are_alike_are_read_as_if_each_were_the_first(
    form: dict[str, type[Attribute]], data: st.DataObject
) -> None:
    own = taught()
    for _ in range(data.draw(st.integers(1, 5))):
        said = {key: data.draw(values[kind]) for key, kind in form.items()}
        line = encode_span(replace(SPAN, attributes=said, message="m", status=data.draw(st.sampled_from([0, 2]))), "1")
        found = own.span(line.encode())
        assert found is not None
        assert [found] == slowly(line)
        assert kinds(found) == [type(value) for value in said.values()]
        start = data.draw(st.integers(line.index('"attributes"', 200), len(line)))
        end = min(len(line), start + data.draw(st.sampled_from([0, 1, 2, 30])))
        broken = line[:start] + data.draw(st.sampled_from(PIECES)) + line[end:]
        found = own.span(broken.encode())
        if found is not None:
            assert [found] == slowly(broken)
            assert [kinds(found)] == [kinds(one) for one in slowly(broken) or ()]


def test_of_lines_that_are_alike_only_what_differs_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    own = taught()
    lines = [encode_span(replace(SPAN, attributes={**SPAN.attributes, "n": n}), "1").encode() for n in range(4)]
    assert [own.span(line) for line in lines[:2]] == [
        replace(SPAN, attributes={**SPAN.attributes, "n": n}) for n in (0, 1)
    ]
    monkeypatch.setattr(ownlines, "_attributes", pytest.fail)
    assert [span and span.attributes["n"] for span in map(own.span, lines)] == [0, 1, 2, 3]


def test_no_more_shapes_are_learned_than_a_person_would_write() -> None:
    own = taught()
    for number in range(2 * MOST_SHAPES):
        span = replace(SPAN, attributes={f"k{number}": "x", "n": 1})
        assert own.span(encode_span(span, "1").encode()) == span
    assert len(own.shapes(SPAN.name)) == MOST_SHAPES
    for number in range(2 * MOST_KINDS):
        span = replace(SPAN, name=f"s{number}")
        assert own.span(encode_span(span, "1").encode()) == span
    assert own.shapes(f"s{MOST_KINDS}") == ()


def test_what_lines_have_in_common_is_not_taken_for_another_line_that_begins_alike() -> None:
    own = taught()
    line = encode_span(SPAN, "1")
    assert own.span(line.encode()) == SPAN
    known = f"{encode_attribute(v.CONNECTION, 'c1')},{encode_attribute(v.TRIAL, 1)},"
    begin, end = line.index(known), line.rindex("]", 0, line.index(',"links"'))
    for broken in (line[: begin + len(known)] + line[end:], line.replace(known, known[:-1])):
        assert own.span(broken.encode()) is None
        assert slowly(broken) is None
