"""A line of a span file in the very shape in which our encoder writes it, read in a fraction of the time.

Refuses to guess: a line that is in any way another one gives None, and is for the reader of all OTLP/JSON.
"""

import re
from collections.abc import Mapping, Sequence
from json import JSONDecoder
from typing import NamedTuple, TypeAlias, cast

from proxy import vocabulary as v
from proxy.lineshapes import DIGITS, Shape, encoded
from proxy.spans import JSON, Attribute, Span

_PLAIN = r'[^"\\\x00-\x1f]*'
_HEAD = re.compile(
    r'\{"resourceSpans":\[\{"resource":\{"attributes":\['
    rf'\{{"key":"service\.name","value":\{{"stringValue":"({_PLAIN})"\}}\}}\]\}},'
    rf'"scopeSpans":\[\{{"scope":\{{"name":"{v.SCOPE}","version":"{_PLAIN}"\}},'
    r'"spans":\[\{"traceId":"([0-9a-f]{32})","spanId":"([0-9a-f]{16})",(?:"parentSpanId":"([0-9a-f]{16})",)?'
    rf'"name":"({_PLAIN})","kind":([0-9]),"startTimeUnixNano":"([0-9]{{1,19}})","endTimeUnixNano":"([0-9]{{1,19}})",'
    r'"attributes":\['
)
_LINK = r'\{"traceId":"([0-9a-f]{32})","spanId":"([0-9a-f]{16})"\}'
_TAIL = re.compile(
    rf'\](?:,"links":\[{_LINK}(?:,{_LINK})?\])?(?:,"status":\{{"code":([0-9]),"message":"({_PLAIN})"\}})?'
    r"\}\]\}\]\}\]\}\n?"
)
FIRST = 50
"""Lines that nothing is learned of: of a short file that would cost more than it saves."""
MOST_KINDS = 500
MOST_SHAPES = 8
"""Kinds of lines, and shapes of each, that are learned. Who writes more of them is read as slowly as anybody else."""

Form: TypeAlias = tuple[tuple[str, type[Attribute] | bool], ...]
"""Keys and kinds of values, in order; truth values themselves."""


class End(NamedTuple):
    """What a line says behind its attributes: links, status code and message."""

    links: tuple[tuple[str, str], ...]
    code: int
    message: str


class OwnLines:
    """Reads one line after another, and learns their shapes: of most lines only what differs from others is parsed."""

    __slots__ = ("_count", "_forms", "_parse", "_shapes")

    def __init__(self) -> None:
        self._parse = JSONDecoder().raw_decode
        self._count = 0
        self._shapes: dict[str, list[tuple[Shape, End]]] = {}
        self._forms: dict[tuple[str, str, Form], Shape] = {}

    def span(self, line: bytes) -> Span | None:
        """The span of the line; None where the line is not, letter by letter, of our encoder's shape."""
        try:
            text = line.decode("ascii")
        except UnicodeDecodeError:
            return None
        head = _HEAD.match(text)
        if head is None:
            return None
        service, trace_id, span_id, parent_id, name, kind, start_ns, end_ns = head.groups()
        start = head.end()
        for shape, known in self.shapes(name):
            attributes = shape.read(text, start)
            if attributes is not None:
                end = known
                break
        else:
            read = self._read(text, start, name)
            if read is None:
                return None
            attributes, end = read
        return Span(
            trace_id,
            span_id,
            parent_id or "",
            name,
            int(kind),
            int(start_ns),
            int(end_ns),
            attributes,
            end.code,
            end.message,
            end.links,
            v.SCOPE,
            service,
        )

    def shapes(self, name: str) -> Sequence[tuple[Shape, End]]:
        """What was learned of the lines of spans of a name."""
        return self._shapes.get(name, ())

    def _read(self, text: str, start: int, name: str) -> tuple[dict[str, Attribute], End] | None:
        """What stands from `start` on, the attributes and what is behind them, whatever its shape, which is learned."""
        try:
            pairs, length = self._parse(text[start - 1 :])
        except (ValueError, RecursionError):
            return None
        behind = start + length - 2
        tail = _TAIL.fullmatch(text, behind)
        attributes = _attributes(pairs) if tail is not None and pairs else None
        if tail is None or attributes is None:
            return None
        *ids, code, message = tail.groups()
        end = End(_links(ids), int(code or 0), message or "")
        self._count += 1
        if self._count > FIRST:
            self._learn(name, attributes, text[start:behind], text[behind:], end)
        return attributes, end

    def _learn(self, name: str, attributes: Mapping[str, Attribute], text: str, tail: str, end: End) -> None:
        """Learn of a line that has these attributes, written as `text`."""
        shapes = self._shapes.get(name, [])
        form: Form = tuple(
            (key, value if isinstance(value, bool) else type(value)) for key, value in attributes.items()
        )
        known = self._forms.get((name, tail, form))
        if known is None and (len(shapes) == MOST_SHAPES or (not shapes and len(self._shapes) == MOST_KINDS)):
            return
        if text != ",".join([encoded(key, value) for key, value in attributes.items()]):
            return
        if known is not None:
            known.widen(attributes)
        else:
            shape = self._forms[name, tail, form] = Shape(attributes, tail)
            self._shapes[name] = [*shapes, (shape, end)]


def _links(ids: list[str | None]) -> tuple[tuple[str, str], ...]:
    pairs = zip(ids[::2], ids[1::2], strict=True)
    return tuple((one, other) for one, other in pairs if one is not None and other is not None)


def _attributes(pairs: JSON) -> dict[str, Attribute] | None:
    """The attributes; None where one is no text, whole number or truth value."""
    found: dict[str, Attribute] = {}
    try:
        for pair in cast("list[dict[str, dict[str, JSON]]]", pairs):
            key, value = pair["key"], pair["value"]
            attribute: JSON = value.get("stringValue")
            if not isinstance(attribute, str):
                digits = value.get("intValue")
                if digits is None:
                    attribute = value.get("boolValue")
                    if not isinstance(attribute, bool):
                        return None
                elif isinstance(digits, str) and digits.isdigit() and digits.isascii() and len(digits) < DIGITS:
                    attribute = int(digits)
                else:
                    return None
            if not isinstance(key, str):
                return None
            found[key] = attribute
    except (KeyError, TypeError, AttributeError):
        return None
    return found
