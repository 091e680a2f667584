"""Which copy of a span counts, when it reached us by more than one way (record.md section 5, identity).

An exporter may mend half surrogate pairs and integers past 64 bits, and cut payloads; a span and its copy that differ
in no other way are one span, and the whole one counts. Refuses to know what a span means.
"""

from typing import NamedTuple

from proxy import vocabulary as v
from proxy.spans import Attribute, Span

PAYLOADS = {
    v.TOOL_ARGUMENTS: v.payload_truncated("arguments"),
    v.TOOL_RESULT: v.payload_truncated("result"),
    v.RESULT: v.payload_truncated("result"),
    v.PARAMS: v.payload_truncated("params"),
    v.REQUEST: v.payload_truncated("request"),
}
"""Attributes that an exporter may cut, and the attribute that says so."""

_ABOUT = frozenset(
    name
    for payload in ("arguments", "result", "params", "request")
    for name in (v.payload_bytes(payload), v.payload_sha256(payload), v.payload_truncated(payload))
)
_COMPARED = (
    frozenset(value for name, value in vars(v).items() if name.isupper() and isinstance(value, str))
    - _ABOUT
    - PAYLOADS.keys()
)
"""A backend may add attributes of its own; only those of our vocabulary make two spans differ."""


class Likeness(NamedTuple):
    """What of a span is compared. `cut` counts cut payloads; `exact` is larger the more of the texts is there."""

    core: int
    payloads: int
    cut: int
    exact: int

    def same(self, other: "Likeness") -> bool:
        """Whether the two spans, of one identity, are copies of one span."""
        return self.core == other.core and (self.payloads == other.payloads or self.cut + other.cut > 0)

    def better(self, other: "Likeness") -> bool:
        """Whether this copy tells more than the other."""
        return (-self.cut, self.exact) > (-other.cut, other.exact)


def likeness(span: Span) -> Likeness:
    """The likeness of one span; two are compared only within one process."""
    attributes = span.attributes
    core: list[tuple[str, Attribute, bool]] = []
    payloads: list[tuple[str, str]] = []
    length = cut = whole = 0
    for key, value in attributes.items():
        if key in _COMPARED:
            mended = _mend(value)
            whole += mended is not value
            core.append((key, mended, value is True))
        elif key in PAYLOADS and isinstance(value, str):
            text = _mend_text(value)
            whole += text is not value
            length += len(text)
            cut += attributes.get(PAYLOADS[key]) is True
            payloads.append((key, text))
    frame = (_mend_text(span.name), span.kind, span.parent_id, span.start_ns, span.end_ns)
    return Likeness(hash((frame, frozenset(core))), hash(frozenset(payloads)), cut, length * 2 + (whole > 0))


def _mend(value: Attribute) -> Attribute:
    """The value as an exporter may have mended it; the very same object where there is nothing to mend."""
    if isinstance(value, str):
        return value if value.isascii() else _mend_text(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value


def _mend_text(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
