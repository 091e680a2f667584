import json
import os
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.spanfile import SpanFile
from proxy.spanread import Tail, read_spans, spans_of
from proxy.spans import JSON, Span, SpanError, encode_span

texts = st.text(st.characters(), max_size=20)
keys = st.text(st.characters(), max_size=12)
numbers = st.integers(-(2**70), 2**70)


def hexes(size: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=size, max_size=size).map(bytes.hex)


spans = st.builds(
    Span,
    trace_id=hexes(16),
    span_id=hexes(8),
    parent_id=st.one_of(st.just(""), hexes(8)),
    name=texts,
    kind=st.integers(0, 5),
    start_ns=st.integers(0, 2**63),
    end_ns=st.integers(0, 2**63),
    attributes=st.dictionaries(keys, st.one_of(texts, st.booleans(), numbers, st.floats(allow_nan=False)), max_size=6),
    status=st.sampled_from([1, 2]),
    message=texts,
    links=st.lists(st.tuples(hexes(16), hexes(8)), max_size=3).map(tuple),
    scope=texts,
    service=texts,
)
SPAN = Span("a" * 32, "b" * 16, "", "tools/call x", 2, 5, 7, {"k": "v", "n": 1, "f": 1.5, "t": True})


def read(*paths: Path) -> tuple[list[Span], list[str]]:
    notes: list[str] = []
    return list(read_spans(paths, notes.append)), notes


def as_json(span: Span) -> dict[str, JSON]:
    return cast("dict[str, JSON]", json.loads(encode_span(span, "0")))


@settings(max_examples=150)
@given(spans)
def test_a_span_that_was_written_is_read_as_the_same_span(span: Span) -> None:
    line = encode_span(span, "0.1.0")
    assert line.isascii()
    assert "\n" not in line
    (again,) = spans_of(json.loads(line), "here")
    assert again == span
    assert [type(value) for value in again.attributes.values()] == [type(v) for v in span.attributes.values()]


def test_a_double_that_is_no_number_survives() -> None:
    span = Span("a" * 32, "b" * 16, "", "x", 1, 0, 0, {"k": float("nan"), "i": float("-inf")})
    (again,) = spans_of(as_json(span), "here")
    assert str(again.attributes["k"]) == "nan"
    assert again.attributes["i"] == float("-inf")


def test_bytes_that_are_not_utf8_survive_as_lone_surrogates(tmp_path: Path) -> None:
    text = b"\xff\xfe{".decode("utf-8", "surrogateescape")
    file = SpanFile.create(tmp_path, "s")
    file.append(encode_span(Span("a" * 32, "b" * 16, "", "x", 1, 0, 0, {"k": text}), "0"))
    file.close()
    (span,), notes = read(tmp_path)
    assert str(span.attributes["k"]).encode("utf-8", "surrogateescape") == b"\xff\xfe{"
    assert notes == []


def test_a_folder_gives_its_span_files_in_order_and_no_others(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "c.txt"):
        (tmp_path / name).write_text(encode_span(Span("a" * 32, "b" * 16, "", name, 1, 0, 0, {}), "0") + "\n")
    assert [span.name for span in read(tmp_path)[0]] == ["a.jsonl", "b.jsonl"]


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_a_file_cut_at_any_byte_gives_its_whole_lines(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    line = encode_span(SPAN, "0").encode() + b"\n"
    data = (line * 3)[: cut % (3 * len(line) + 1)]
    path = tmp_path_factory.mktemp("cut") / "s.jsonl"
    path.write_bytes(data)
    found, notes = read(path)
    whole, torn = divmod(len(data), len(line))
    # A line that lacks nothing but its newline has lost nothing.
    complete = torn == len(line) - 1
    assert len(found) == whole + complete
    assert len(notes) == (1 if torn and not complete else 0)
    assert all("s.jsonl" in note and "torn" in note for note in notes)


@pytest.mark.parametrize("broken", ["{", "nonsense", '{"resourceSpans":[', "[" * 5000, "\udcff"])
def test_a_broken_line_that_is_not_torn_is_refused_by_file_and_line(tmp_path: Path, broken: str) -> None:
    good = encode_span(SPAN, "0")
    path = tmp_path / "s.jsonl"
    for lines, number in (([good, broken, good], 2), ([broken, good], 1), ([good, broken], 2)):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
        with pytest.raises(SpanError, match=rf"s\.jsonl: line {number} "):
            read(path)


def test_blank_lines_are_no_spans(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f"\n{encode_span(SPAN, '0')}\n  \n{encode_span(SPAN, '0')}\n\n")
    assert len(read(path)[0]) == 2


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpanError, match=r"none\.jsonl"):
        read(tmp_path / "none.jsonl")


def test_a_pretty_document_and_a_jaeger_answer_read_alike(tmp_path: Path) -> None:
    document = as_json(SPAN)
    wrapped = {"result": document}
    for value in (document, wrapped):
        path = tmp_path / "document.json"
        path.write_text(json.dumps(value, indent=2))
        assert read(path) == ([SPAN], [])


def test_enums_by_name_and_integers_as_numbers_are_read() -> None:
    raw = as_json(Span("a" * 32, "b" * 16, "c" * 16, "x", 2, 5, 7, {}, 2, "m"))
    text = json.dumps(raw).replace('"kind": 2', '"kind": "SPAN_KIND_SERVER"')
    text = text.replace('"code": 2', '"code": "STATUS_CODE_ERROR"').replace('"5"', "5").replace("a" * 32, "A" * 32)
    (span,) = spans_of(json.loads(text), "here")
    assert (span.kind, span.status, span.start_ns, span.trace_id) == (2, 2, 5, "a" * 32)


def test_a_document_may_hold_many_resources_scopes_and_spans() -> None:
    one = cast("list[JSON]", as_json(SPAN)["resourceSpans"])
    document: dict[str, JSON] = {"resourceSpans": one * 3}
    assert len(list(spans_of(document, "here"))) == 3


def test_an_answer_without_traces_has_no_spans() -> None:
    assert list(spans_of({"result": {}}, "here")) == []
    assert list(spans_of({"resourceLogs": []}, "here")) == []


def test_nested_values_of_other_instrumentations_are_left_out() -> None:
    raw = json.loads(encode_span(Span("a" * 32, "b" * 16, "", "x", 1, 0, 0, {"k": "v"}, scope="other"), "0"))
    pairs = raw["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
    pairs += [
        {"key": "list", "value": {"arrayValue": {"values": []}}},
        {"key": "map", "value": {"kvlistValue": {}}},
        {"key": "odd", "value": {"newValue": 1}},
        {"key": "none"},
    ]
    (span,) = spans_of(raw, "here")
    assert dict(span.attributes) == {"k": "v"}


def test_a_span_of_others_that_cannot_be_read_is_left_out_and_one_of_ours_is_an_error() -> None:
    for scope in ("other", "wiretrap"):
        raw = json.loads(encode_span(Span("a" * 32, "b" * 16, "", "x", 1, 0, 0, {}, scope=scope), "0"))
        raw["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "short"
        if scope == "other":
            assert list(spans_of(raw, "here")) == []
        else:
            with pytest.raises(SpanError, match="here: traceId"):
                list(spans_of(raw, "here"))


@pytest.mark.parametrize(
    "document", [{}, [], {"error": {"message": "no"}}, {"resourceSpans": {}}, {"resourceSpans": [1]}]
)
def test_what_is_no_span_document_is_refused(document: JSON) -> None:
    with pytest.raises(SpanError, match="here: "):
        list(spans_of(document, "here"))


def test_a_growing_file_gives_each_span_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    line = encode_span(SPAN, "0").encode() + b"\n"
    path.write_bytes(line + line[:10])
    tail = Tail(str(path))
    assert len(tail.read()) == 1
    assert tail.read() == []
    assert tail.rest == line[:10]
    with path.open("ab") as stream:
        stream.write(line[10:] + line)
    assert len(tail.read()) == 2
    assert tail.rest == b""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spanId", "zz" * 8),
        ("kind", "SPAN_KIND_NEW"),
        ("kind", True),
        ("name", 1),
        ("startTimeUnixNano", "1.5"),
        ("endTimeUnixNano", "9" * 5000),
        ("links", {}),
        ("attributes", [{"key": 1}]),
        ("attributes", [{"key": "k", "value": {"odd": 1}}]),
        ("attributes", [{"key": "k"}]),
        ("attributes", [{"key": "k", "value": {"intValue": "x"}}]),
        ("attributes", "x"),
    ],
)
def test_a_span_of_ours_that_is_not_as_otlp_has_it_is_an_error_that_names_the_place(field: str, value: JSON) -> None:
    raw = json.loads(encode_span(SPAN, "0"))
    raw["resourceSpans"][0]["scopeSpans"][0]["spans"][0][field] = value
    with pytest.raises(SpanError, match=r"^s\.jsonl: line 3: "):
        list(spans_of(raw, "s.jsonl: line 3"))


def test_a_document_without_resource_scope_or_attributes_is_one_of_others() -> None:
    raw = json.loads(encode_span(Span("a" * 32, "b" * 16, "", "x", 1, 0, 0, {}), "0"))
    resource = raw["resourceSpans"][0]
    del resource["resource"], resource["scopeSpans"][0]["scope"], resource["scopeSpans"][0]["spans"][0]["attributes"]
    (span,) = spans_of(raw, "here")
    assert (span.scope, span.service, span.attributes) == ("", "", {})


def test_a_growing_file_that_breaks_or_goes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\nnope\n")
    with pytest.raises(SpanError, match=r"s\.jsonl: line 2 "):
        Tail(str(path)).read()
    path.unlink()
    with pytest.raises(SpanError, match=r"s\.jsonl"):
        Tail(str(path)).read()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_in_a_folder_of_spans_is_an_error_and_holds_nothing_up(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "x.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    with pytest.raises(SpanError, match=r"x\.jsonl"):
        list(read_spans([tmp_path], print))


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.spanread.LONGEST_LINE", 1000)
    with (tmp_path / "x.jsonl").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SpanError, match="more than 1000 bytes"):
        list(read_spans([tmp_path], print))
