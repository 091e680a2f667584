"""Every kind of span, attribute, event and field of a trace is documented, and no other."""

import ast
import re

from harness.trace import Coverage, Message, Outcome, Source, ToolCall, Trace
from proxy import vocabulary
from tests.docs.pages import ROOT, first_cells, section, ticked, words_of


def attributes() -> set[str]:
    """Every attribute of the vocabulary: its public texts with a dot in them, and those of the payloads."""
    source = ast.parse((ROOT / "proxy" / "vocabulary.py").read_text())
    names = [
        target.id
        for node in source.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id not in ("SEMCONV", "SCOPE")
    ]
    payloads = ("arguments", "result", "params", "request", "fault.result")
    makers = (vocabulary.payload_bytes, vocabulary.payload_sha256, vocabulary.payload_truncated)
    return {getattr(vocabulary, name) for name in names} | {make(one) for make in makers for one in payloads}


def test_every_attribute_of_a_span_is_in_the_table_and_no_other() -> None:
    told = first_cells(section("spans.md", "Attributes"))
    assert sorted(told) == sorted(attributes())


def test_every_kind_of_span_is_in_the_table_and_no_other() -> None:
    source = (ROOT / "proxy" / "vocabulary.py").read_text()
    found = re.search(r'SPAN_KIND = .*\n"""([a-z_,\s]+) or ([a-z_]+)\."""', source)
    assert found is not None
    kinds = {*re.split(r",\s", found[1]), found[2]}
    assert {cell for cell in first_cells(section("spans.md", "The kinds")) if cell != "wiretrap.span"} == kinds


def test_every_outcome_is_in_the_table_and_no_other() -> None:
    assert set(first_cells(section("spans.md", "Outcomes"))) - {"wiretrap.outcome"} == words_of(Outcome)


def test_every_field_of_a_trace_is_in_its_table_and_no_other() -> None:
    assert set(first_cells(section("trace.md", "The document"))) == {"schema_version", *Trace.__dataclass_fields__}
    # A message of a trial has the agent's id among what is extra.
    assert set(first_cells(section("trace.md", "Messages"))) == {"agent", *Message.__dataclass_fields__} - {"extra"}
    assert set(first_cells(section("trace.md", "Tool calls"))) == set(ToolCall.__dataclass_fields__) - {"extra"}
    assert set(Coverage.__dataclass_fields__) <= ticked(section("trace.md", "Coverage"))
    assert set(first_cells(section("trace.md", "Coverage"))) == words_of(Source)


def test_every_event_is_in_the_table_with_every_field() -> None:
    modules = (ROOT / "harness" / f"{name}.py" for name in ("mcpevents", "wiremessages"))
    source = ast.parse("\n".join(module.read_text() for module in modules))
    texts = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    events = {text for text in texts if re.fullmatch(r"mcp_[a-z]+_[a-z_]+", text)} - {
        "mcp_tool_name",
        "mcp_prompt_name",
    }
    told = section("trace.md", "Events")
    assert set(first_cells(told)) - {"goal", "model_call", "approval", "fault"} == events
    keys = {
        key.value
        for node in ast.walk(source)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    assert keys <= ticked(told)
