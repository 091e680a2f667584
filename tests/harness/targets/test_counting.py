from pathlib import Path

from harness.targets.counting import CallCounter
from proxy.spans import INTERNAL, Span, encode_span
from proxy.vocabulary import METHOD, REQUEST, SPAN_KIND


def line(kind: str, method: str, request: str = "") -> bytes:
    attributes = {SPAN_KIND: kind, METHOD: method, REQUEST: request}
    span = Span("0" * 31 + "1", "0" * 15 + "1", "", kind, INTERNAL, 1, 1, attributes)
    return encode_span(span, "0").encode() + b"\n"


def test_each_decision_on_a_call_counts_once_and_nothing_else_does(tmp_path: Path) -> None:
    counter = CallCounter(tmp_path)
    assert counter.count() == 0
    file = tmp_path / "crm.1.jsonl"
    file.write_bytes(line("decision", "tools/call") + line("request", "tools/call"))
    (tmp_path / "other.2.jsonl").write_bytes(line("decision", "resources/read", '{"method":"tools/call"}'))
    assert counter.count() == 1
    with file.open("ab") as more:
        more.write(line("decision", "tools/call"))
    assert counter.count() == 2
    assert counter.count() == 2


def test_a_line_counts_when_it_is_whole(tmp_path: Path) -> None:
    counter = CallCounter(tmp_path)
    whole = line("decision", "tools/call")
    (tmp_path / "a.jsonl").write_bytes(whole[:50])
    assert counter.count() == 0
    (tmp_path / "a.jsonl").write_bytes(whole)
    assert counter.count() == 1


def test_a_broken_line_and_a_line_of_another_shape_count_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'"decision" "tools/call"\n["decision", "tools/call"]\n')
    assert CallCounter(tmp_path).count() == 0
