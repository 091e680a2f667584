"""Spans out of files: our own OTLP/JSON lines, OTLP/JSON documents, and answers of Jaeger's api_v3.

Refuses to know what a span means; spans of other instrumentations come out too, and their `scope` says so.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf, nan
from typing import BinaryIO, cast

from proxy.ownlines import OwnLines
from proxy.plainfile import lines_of, open_plain, read_at_most
from proxy.spans import JSON, Attribute, Span, SpanError
from proxy.vocabulary import SCOPE

Note = Callable[[str], None]
"""Is told, in one line, what was skipped and where."""

KINDS = {
    "SPAN_KIND_UNSPECIFIED": 0,
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}
STATUSES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
DOUBLES = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
"""How the JSON mapping of protocol buffers writes what a JSON number cannot be."""
HEX = frozenset("0123456789abcdef")
LONGEST_LINE = 256 * 1024 * 1024
"""Bytes of a line that is read: the longest frame that is recorded, as JSON of JSON, stays below it."""
LARGEST_DOCUMENT = 1024 * 1024 * 1024
"""Bytes of a document that is no span a line, which is read as a whole."""


def files_of(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that `paths` name: a file itself, of a folder its `*.jsonl`, sorted. Raises SpanError."""
    files: list[str] = []
    for given in paths:
        path = os.fspath(given)
        if os.path.isdir(path):
            try:
                names = sorted(name for name in os.listdir(path) if name.endswith(".jsonl"))
            except OSError as error:
                raise SpanError(f"{path}: {error.strerror}") from error
            files += [os.path.join(path, name) for name in names]
        else:
            files.append(path)
    return files


def read_spans(
    paths: Iterable[str | os.PathLike[str]], on_note: Note, on_broken: Callable[[SpanError], None] | None = None
) -> Iterator[Span]:
    """The spans of the files, in the files' order, one line in memory at a time.

    A last line that was torn by a kill is skipped and told to `on_note`. Raises SpanError with file and line for a
    broken line anywhere else, and for a file that cannot be read; in a folder that is any that is no regular file. With
    `on_broken` that is told instead, the rest of such a file is left out, and the next one is read.
    """
    given = [os.fspath(path) for path in paths]
    named = frozenset(given)
    for path in files_of(given):
        try:
            yield from _spans_of_file(path, path in named, on_note)
        except SpanError as error:
            if on_broken is None:
                raise
            on_broken(error)


def _spans_of_file(path: str, is_named: bool, on_note: Note) -> Iterator[Span]:
    try:
        # What lies in a folder somebody else may have put there; a file that a person names may be any.
        with open(path, "rb") if is_named else open_plain(path) as stream:
            yield from _spans_of_stream(path, stream, on_note)
    except OSError as error:
        raise SpanError(f"{path}: {error.strerror or error}") from error


def _spans_of_stream(path: str, stream: BinaryIO, on_note: Note) -> Iterator[Span]:
    lines = lines_of(stream, LONGEST_LINE)
    own = OwnLines()
    for number, line in enumerate(lines, 1):
        span = own.span(line)
        if span is not None:
            yield span
            continue
        if line.isspace():
            continue
        document = _load(line)
        if document is None and number == 1:
            # A document that is printed over many lines is no JSON by its first line alone.
            rest = read_at_most(stream, LARGEST_DOCUMENT)
            whole = _load(line + rest)
            if whole is not None:
                yield from spans_of(whole, path)
                return
        if document is None:
            if line.endswith(b"\n"):
                raise SpanError(f"{path}: {_broken(number)}")
            on_note(f"{os.path.basename(path)}: the last line, {number}, is torn ({len(line)} bytes) and was skipped")
            return
        yield from spans_of(document, f"{path}: line {number}")


class Tail:
    """Reads a span file that still grows: each `read` gives the spans of the lines that were completed since."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rest = b""
        self._offset = 0
        self._lines = 0

    def read(self) -> list[Span]:
        """The new spans. `rest` holds what has no newline yet. Raises SpanError as `read_spans` does."""
        try:
            with open_plain(self.path, follow=True) as stream:
                stream.seek(self._offset)
                data = stream.read()
        except OSError as error:
            raise SpanError(f"{self.path}: {error.strerror or error}") from error
        self._offset += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        spans: list[Span] = []
        for line in lines:
            self._lines += 1
            if not line or line.isspace():
                continue
            document = _load(line)
            if document is None:
                raise SpanError(f"{self.path}: {_broken(self._lines)}")
            spans += spans_of(document, f"{self.path}: line {self._lines}")
        return spans


def _broken(number: int) -> str:
    return (
        f"line {number} is no JSON in UTF-8; put the file back as it was written, or take the line out:"
        " then the record counts as incomplete"
    )


def _load(data: bytes) -> JSON:
    """The JSON value of `data`, None where it is none (a span document is never null)."""
    try:
        value: JSON = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def spans_of(document: JSON, where: str) -> Iterator[Span]:
    """The spans of one OTLP/JSON document or Jaeger api_v3 answer; `where` heads the message of a SpanError."""
    match document:
        case {"result": dict() as result}:
            resources = result.get("resourceSpans", [])
        case {"resourceSpans": resources}:
            pass
        case {"resourceLogs": _} | {"resourceMetrics": _}:
            return
        case _:
            raise SpanError(f"{where}: is no OTLP/JSON: it has no resourceSpans")
    for resource in _objects(resources, where, "resourceSpans"):
        service = ""
        match resource.get("resource"):
            case {"attributes": list() as pairs}:
                service = str(_attributes(pairs, where, False).get("service.name", ""))
            case _:
                pass
        for scoped in _objects(resource.get("scopeSpans"), where, "scopeSpans"):
            scope = ""
            match scoped.get("scope"):
                case {"name": str() as name}:
                    scope = name
                case _:
                    pass
            for raw in _objects(scoped.get("spans"), where, "spans"):
                try:
                    yield _span(raw, scope, service, where)
                except SpanError:
                    # What another instrumentation wrote is not evidence, so its faults stop nothing.
                    if scope == SCOPE:
                        raise


def _objects(value: JSON, where: str, field: str) -> list[dict[str, JSON]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise SpanError(f"{where}: {field}: a list is expected, not {str(value)[:40]}")
    for item in value:
        if not isinstance(item, dict):
            raise SpanError(f"{where}: {field}: an object is expected, not {str(item)[:40]}")
    return cast("list[dict[str, JSON]]", value)


def _span(raw: Mapping[str, JSON], scope: str, service: str, where: str) -> Span:
    status = raw.get("status")
    code, message = 0, ""
    if isinstance(status, dict):
        code = _number(status.get("code", 0), STATUSES, where, "status.code")
        message = _text(status.get("message", ""), where, "status.message")
    pairs = raw.get("attributes", [])
    return Span(
        trace_id=_id(raw.get("traceId"), 32, where, "traceId"),
        span_id=_id(raw.get("spanId"), 16, where, "spanId"),
        parent_id=_id(raw["parentSpanId"], 16, where, "parentSpanId") if raw.get("parentSpanId") else "",
        name=_text(raw.get("name", ""), where, "name"),
        kind=_number(raw.get("kind", 0), KINDS, where, "kind"),
        start_ns=_number(raw.get("startTimeUnixNano", 0), {}, where, "startTimeUnixNano"),
        end_ns=_number(raw.get("endTimeUnixNano", 0), {}, where, "endTimeUnixNano"),
        attributes=_attributes(pairs, where, scope == SCOPE),
        status=code,
        message=message,
        links=tuple(
            (_id(link.get("traceId"), 32, where, "links.traceId"), _id(link.get("spanId"), 16, where, "links.spanId"))
            for link in _objects(raw.get("links"), where, "links")
        ),
        scope=scope,
        service=service,
    )


def _attributes(pairs: JSON, where: str, ours: bool) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for pair in _objects(pairs, where, "attributes"):
        key, value = pair.get("key"), pair.get("value")
        if not isinstance(key, str):
            raise SpanError(f"{where}: attributes: a key is expected to be text")
        if isinstance(value, dict):
            # Nearly all are texts, and a match over mappings is slow.
            text = value.get("stringValue")
            if isinstance(text, str):
                found[key] = text
                continue
        attribute = _attribute(value, where, key, ours)
        if attribute is not None:
            found[key] = attribute
    return found


def _attribute(value: JSON, where: str, key: str, ours: bool) -> "Attribute | None":
    """The value of an attribute that is no text; None for a nested one, and for one of others that cannot be read."""
    match value:
        case {"intValue": (str() | int()) as number}:
            return _number(number, {}, where, key)
        case {"boolValue": bool() as flag}:
            return flag
        case {"doubleValue": (int() | float()) as number}:
            return float(number)
        case {"doubleValue": ("NaN" | "Infinity" | "-Infinity") as name}:
            return DOUBLES[name]
        case {"arrayValue": _} | {"kvlistValue": _} | {"bytesValue": _}:
            return None
        case _ if ours:
            raise SpanError(f"{where}: attribute {key} has no value that OTLP/JSON knows")
        case _:
            return None


def _number(value: JSON, names: Mapping[str, int], where: str, field: str) -> int:
    """An integer of OTLP/JSON: a number, its digits as text, or the name of an enum's member."""
    match value:
        case bool():
            pass
        case int():
            return value
        case str() if value in names:
            return names[value]
        case str() if value.isascii() and value.removeprefix("-").isdigit():
            try:
                return int(value)
            except ValueError:
                pass
        case _:
            pass
    raise SpanError(f"{where}: {field} is no integer: {str(value)[:40]!r}")


def _text(value: JSON, where: str, field: str) -> str:
    if not isinstance(value, str):
        raise SpanError(f"{where}: {field} is no text: {str(value)[:40]!r}")
    return value


def _id(value: JSON, digits: int, where: str, field: str) -> str:
    if isinstance(value, str) and len(value) == digits:
        text = value.lower()
        if HEX.issuperset(text):
            return text
    raise SpanError(f"{where}: {field} is not {digits} hex digits: {str(value)[:40]!r}")
