"""A span as a small record of ours, and its OTLP/JSON form (OTLP 1.x, JSON encoding: hex ids, 64-bit integers as text).

Refuses to know files, frames and policy: it takes values and returns values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import TypeAlias

from proxy.vocabulary import SCOPE

Attribute: TypeAlias = "str | bool | int | float"
JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

INTERNAL, SERVER = 1, 2
"""`Span.kind`, numbered as in opentelemetry.proto.trace.v1.Span.SpanKind."""
UNSET, ERROR = 0, 2
"""`Span.status`, numbered as in opentelemetry.proto.trace.v1.Status.StatusCode."""


class SpanError(ValueError):
    """A span that cannot be read: what is wrong, and where in the OTLP/JSON it stands."""


@dataclass(frozen=True, slots=True)
class Span:
    """One recorded fact. Times are Unix nanoseconds, ids lower-case hex (32 and 16 digits), `parent_id` "" for a root.

    `links` are (trace id, span id) pairs. `scope` and `service` tell whose span it is; ours have scope `wiretrap`.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Attribute]
    status: int = UNSET
    message: str = ""
    links: tuple[tuple[str, str], ...] = ()
    scope: str = SCOPE
    service: str = "wiretrap"


_AT_ONCE = 1024 * 1024
"""Characters that are quoted at once: meanwhile no other thread goes on."""


def _quoted(text: str) -> str:
    if len(text) <= _AT_ONCE:
        return encode_basestring_ascii(text)
    parts = range(0, len(text), _AT_ONCE)
    return f'"{"".join([encode_basestring_ascii(text[at : at + _AT_ONCE])[1:-1] for at in parts])}"'


_HEADS: dict[str, str] = {}


def encode_attribute(key: str, value: Attribute) -> str:
    """The OTLP/JSON text of one attribute. Lone surrogates are kept, as escapes. `key` is one of a fixed vocabulary."""
    head = _HEADS.get(key)
    if head is None:
        head = _HEADS[key] = f'{{"key":{encode_basestring_ascii(key)},"value":{{'
    match value:
        case str():
            return f'{head}"stringValue":{_quoted(value)}}}}}'
        case bool():
            return f'{head}"boolValue":{"true" if value else "false"}}}}}'
        case int():
            return f'{head}"intValue":"{value}"}}}}'
        case float() if value - value == 0:
            return f'{head}"doubleValue":{value!r}}}}}'
        case float():
            # The JSON mapping of protocol buffers has names for what no JSON number is.
            name = "Infinity" if value > 0 else "-Infinity" if value < 0 else "NaN"
            return f'{head}"doubleValue":"{name}"}}}}'


def template(*keys: str) -> str:
    """A %-format for the OTLP/JSON text of several text attributes, to be filled with their quoted values in order."""
    return ",".join([f'{{"key":{encode_basestring_ascii(key)},"value":{{"stringValue":%s}}}}' for key in keys])


def number_template(*keys: str) -> str:
    """The same for whole numbers, to be filled with the numbers."""
    return ",".join([f'{{"key":{encode_basestring_ascii(key)},"value":{{"intValue":"%d"}}}}' for key in keys])


def encode_span(span: Span, version: str) -> str:
    """The span as one OTLP/JSON document on one line, without the newline; `version` is the scope's."""
    attributes = ",".join([encode_attribute(key, value) for key, value in span.attributes.items()])
    links = ",".join([f'{{"traceId":"{trace}","spanId":"{span_id}"}}' for trace, span_id in span.links])
    parent = f'"parentSpanId":"{span.parent_id}",' if span.parent_id else ""
    status = ""
    if span.status != UNSET:
        status = f',"status":{{"code":{span.status},"message":{encode_basestring_ascii(span.message)}}}'
    return (
        '{"resourceSpans":[{"resource":{"attributes":['
        + encode_attribute("service.name", span.service)
        + f']}},"scopeSpans":[{{"scope":{{"name":{encode_basestring_ascii(span.scope)},"version":"{version}"}},'
        + f'"spans":[{{"traceId":"{span.trace_id}","spanId":"{span.span_id}",{parent}'
        + f'"name":{encode_basestring_ascii(span.name)},"kind":{span.kind},'
        + f'"startTimeUnixNano":"{span.start_ns}","endTimeUnixNano":"{span.end_ns}",'
        + f'"attributes":[{attributes}]'
        + (f',"links":[{links}]' if links else "")
        + status
        + "}]}]}]}"
    )
