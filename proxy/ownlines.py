"""A line of a span file in the very shape in which our encoder writes it, read in a fraction of the time.

Refuses to guess: a line that is in any way another one gives None, and is for the reader of all OTLP/JSON.
"""

import re
from json import JSONDecoder
from typing import cast

from proxy import vocabulary as v
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
    rf'(?:,"links":\[{_LINK}(?:,{_LINK})?\])?(?:,"status":\{{"code":([0-9]),"message":"({_PLAIN})"\}})?'
    r"\}\]\}\]\}\]\}\n?"
)
_COMMON_ENDS = f',{{"key":"{v.SPAN_KIND}",'
"""What the recorder writes after the attributes that all spans of a connection have."""


class OwnLines:
    """Reads one line after another; what the lines of one connection have in common is parsed once."""

    __slots__ = ("_common", "_common_text", "_links", "_parse")

    def __init__(self) -> None:
        self._common_text = ""
        self._common: dict[str, Attribute] = {}
        self._links: dict[tuple[str | None, ...], tuple[tuple[str, str], ...]] = {}
        self._parse = JSONDecoder().raw_decode

    def span(self, line: bytes) -> Span | None:
        """The span of the line; None where the line is not, letter by letter, of our encoder's shape."""
        if not line.isascii():
            return None
        text = line.decode("ascii")
        head = _HEAD.match(text)
        if head is None:
            return None
        start = head.end()
        if not self._common_text or not text.startswith(self._common_text, start):
            self._learn(text, start)
        rest = start + len(self._common_text)
        try:
            pairs, end = self._parse(f"[{text[rest:]}")
        except (ValueError, RecursionError):
            return None
        tail = _TAIL.fullmatch(text, rest + end - 1)
        attributes = _attributes(pairs, self._common) if tail is not None and pairs else None
        if tail is None or attributes is None:
            return None
        service, trace_id, span_id, parent_id, name, kind, start_ns, end_ns = head.groups()
        *linked, code, message = tail.groups()
        return Span(
            trace_id,
            span_id,
            parent_id or "",
            name,
            int(kind),
            int(start_ns),
            int(end_ns),
            attributes,
            int(code or 0),
            message or "",
            self._linked(tuple(linked)),
            v.SCOPE,
            service,
        )

    def _learn(self, text: str, start: int) -> None:
        """Note the attributes that stand before the kind of the span."""
        self._common_text, self._common = "", {}
        found = text[start : max(text.find(_COMMON_ENDS, start), start)]
        try:
            pairs, end = self._parse(f"[{found}]")
        except (ValueError, RecursionError):
            return
        common = _attributes(pairs, {})
        if common and end == len(found) + 2:
            self._common_text, self._common = f"{found},", common

    def _linked(self, ids: tuple[str | None, ...]) -> tuple[tuple[str, str], ...]:
        """The links, as one copy for all spans that have the same."""
        links = self._links.get(ids)
        if links is None:
            if len(self._links) > 1000:
                self._links.clear()
            pairs = zip(ids[::2], ids[1::2], strict=True)
            links = self._links[ids] = tuple(
                (one, other) for one, other in pairs if one is not None and other is not None
            )
        return links


def _attributes(pairs: JSON, common: dict[str, Attribute]) -> dict[str, Attribute] | None:
    """The attributes with the common ones before them; None where one is no text, whole number or truth value."""
    found = common.copy()
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
                elif isinstance(digits, str) and digits.isdigit() and digits.isascii() and len(digits) < 20:
                    attribute = int(digits)
                else:
                    return None
            if not isinstance(key, str):
                return None
            found[key] = attribute
    except (KeyError, TypeError, AttributeError):
        return None
    return found
