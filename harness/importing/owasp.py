"""Traces of the OWASP Agent Security Regression Harness. Refuses to know its scenarios and rules."""

from collections.abc import Iterator

from harness.importing.form import Imported, ImportFormatError
from harness.jsontext import load_json
from harness.tracefile import trace_from_json
from harness.traceread import TraceFileError
from proxy.spans import JSON


def read_owasp(text: str, stem: str, where: str) -> Iterator[Imported]:
    """The one trace of a file: what it says is kept, and counts as reported."""
    try:
        value: JSON = load_json(text)
        if isinstance(value, dict) and "schema_version" in value:
            raise ImportFormatError(f"{where}: is a trace of ours already")
        yield Imported(stem, trace_from_json(value, where))
    except (ValueError, TraceFileError) as error:
        raise ImportFormatError(f"{where}: {error}" if where not in str(error) else str(error)) from error
