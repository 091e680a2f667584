"""Which copy of a span counts, when it reached us by more than one way (record.md section 5, identity).

An exporter may mend half surrogate pairs and integers past 64 bits, and cut payloads; a span and its copy that differ
in no other way are one span, and the whole one counts. Refuses to know what a span means.
"""

from struct import Struct
from typing import NamedTuple

from proxy import vocabulary as v
from proxy.mending import CUT_FLAGS, LIMIT, cut_text, mend, mend_text
from proxy.spans import Attribute, Span

_ABOUT = frozenset(
    name
    for payload in ("arguments", "result", "params", "request")
    for name in (v.payload_bytes(payload), v.payload_sha256(payload), v.payload_truncated(payload))
) | {v.EXPORT_MENDED, v.EXPORT_CUT}
_COMPARED = (
    frozenset(value for name, value in vars(v).items() if name.isupper() and isinstance(value, str))
    - _ABOUT
    - CUT_FLAGS.keys()
)
"""A backend may add attributes of its own; only those of our vocabulary make two spans differ."""
_PACKED = Struct("qqqq")
_LEAST, _MOST = -(2**63), 2**63 - 1
_SHORT = LIMIT // 4
"""Characters of a text that no exporter cuts, whatever they are."""


class Likeness(NamedTuple):
    """What of a span is compared. `cut` counts cut payloads; `exact` is larger the more of the texts is there."""

    core: int
    payloads: int
    cut: int
    exact: int

    def same(self, other: "Likeness") -> bool:
        """Whether the two spans, of one identity, are copies of one span."""
        return self.core == other.core and (self.payloads == other.payloads or self.cut + other.cut > 0)

    def packed(self) -> bytes:
        """The same in a third of the memory, which matters where there is one for each of very many spans."""
        return _PACKED.pack(*self)

    @classmethod
    def unpacked(cls, raw: bytes) -> "Likeness":
        """What was packed."""
        return cls(*_PACKED.unpack(raw))

    def better(self, other: "Likeness") -> bool:
        """Whether this copy tells more than the other."""
        return (-self.cut, self.exact) > (-other.cut, other.exact)


def likeness(span: Span) -> Likeness:
    """The likeness of one span; two are compared only within one process."""
    attributes = span.attributes
    core: list[tuple[str, Attribute] | tuple[str, Attribute, bool]] = []
    payloads: list[tuple[str, str]] = []
    length = whole = 0
    cut = int(v.EXPORT_CUT in attributes)
    for item in attributes.items():
        key, value = item
        if key in _COMPARED:
            if isinstance(value, str):
                if len(value) <= _SHORT and value.isascii():
                    core.append(item)
                    continue
            elif type(value) is int and _LEAST <= value <= _MOST:
                core.append((key, value, False))
                continue
            mended = mend(value)
            whole += mended is not value
            if not isinstance(mended, str):
                core.append((key, mended, value is True))
                continue
            if len(mended) > _SHORT:
                # Only its beginning is sure to be in a copy.
                length += len(mended)
                mended = cut_text(mended)
            core.append((key, mended))
        elif key in CUT_FLAGS and isinstance(value, str):
            text = mend_text(value)
            whole += text is not value
            length += len(text)
            cut += attributes.get(CUT_FLAGS[key]) is True
            payloads.append((key, text))
    frame = (cut_text(mend_text(span.name)), span.kind, span.parent_id, span.start_ns, span.end_ns)
    return Likeness(hash((frame, frozenset(core))), hash(frozenset(payloads)), cut, length * 2 + (whole > 0))
