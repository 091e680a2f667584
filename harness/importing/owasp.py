"""Traces of the OWASP Agent Security Regression Harness. Refuses to know its scenarios and rules."""

from collections.abc import Iterator

from harness.importing.form import Imported, ImportFormatError
from harness.jsontext import load_json
from harness.tracefile import trace_from_json
from harness.traceread import TraceFileError
from proxy.spans import JSON

_LISTS = ("messages", "tool_calls", "events")
_OTHERS = frozenset({"trajectory", "final_response", "prompt", "verdict", "scenarios"})


def read_owasp(text: str, stem: str, where: str) -> Iterator[Imported]:
    """The one trace of a file: what it says is kept, and counts as reported."""
    try:
        value: JSON = load_json(text)
        if isinstance(value, dict) and "schema_version" in value:
            raise ImportFormatError(f"{where}: is a trace of ours already")
        if not isinstance(value, dict) or not any(isinstance(value.get(name), list) for name in _LISTS):
            raise ImportFormatError(f"{where}: has none of the lists {', '.join(_LISTS)}, so it is no such trace")
        if other := sorted(value.keys() & _OTHERS):
            raise ImportFormatError(f"{where}: has {other[0]}, so it is of agent-mark, or of a report")
        yield Imported(stem, trace_from_json(value, where))
    except (ValueError, TraceFileError) as error:
        raise ImportFormatError(f"{where}: {error}" if where not in str(error) else str(error)) from error
