"""What an exporter changes in a span that a backend would choke on, and how the span says so (record.md section 2).

Pure: refuses to know where spans go. The file keeps every span whole; only copies of it are mended and cut.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from proxy import vocabulary as v
from proxy.spans import Attribute, Span

LIMIT = 64 * 1024
"""Bytes of UTF-8 of one text in an exported span."""

CUT_FLAGS: Mapping[str, str] = {
    v.TOOL_ARGUMENTS: v.payload_truncated("arguments"),
    v.TOOL_RESULT: v.payload_truncated("result"),
    v.RESULT: v.payload_truncated("result"),
    v.PARAMS: v.payload_truncated("params"),
    v.REQUEST: v.payload_truncated("request"),
}
"""Payload attributes, and the attribute that says that one is cut."""

_LONG_LINE = 4 * LIMIT
_KEPT = 6 * LIMIT + 12
"""Characters of a JSON string that decode to more than LIMIT bytes, whatever they are: `\\u0000` is one byte."""
_PART = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u]){1,8192}+', re.DOTALL)
_END = re.compile(r'"(?:,"|\}\},\{"|\}\}\],")')
"""What follows a text in a line of ours; inside a text it cannot be, where every quote has a backslash before it."""
_LOW_HALF = re.compile(r"\\u[dD][c-fC-F]")
_WINDOW = 128 * 1024


def mend_text(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair; the very same object where there is none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mend(value: Attribute) -> Attribute:
    """The value as protocol buffers can hold it: an integer past 64 bits becomes its digits as text."""
    if isinstance(value, str):
        return mend_text(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value


def cut_text(text: str) -> str:
    """The first LIMIT bytes of a mended text, whole characters only; the very same object where it is no longer."""
    if len(text) * 4 <= LIMIT:
        return text
    raw = text.encode()
    return text if len(raw) <= LIMIT else raw[:LIMIT].decode(errors="ignore")


def exportable(span: Span) -> Span:
    """The span as it may be sent. What was mended and what was cut stands in attributes of its own."""
    mended: list[str] = []
    cut: list[str] = []

    def fit(key: str, text: str) -> str:
        sound = mend_text(text)
        short = cut_text(sound)
        if sound is not text and text[: len(short)] != short:
            mended.append(key)
        if short is not sound:
            cut.append(key)
        return short

    attributes: dict[str, Attribute] = {}
    for key, value in span.attributes.items():
        if isinstance(value, str):
            attributes[mend_text(key)] = fit(mend_text(key), value)
            continue
        attributes[mend_text(key)] = sound = mend(value)
        if sound is not value:
            mended.append(mend_text(key))
    name, message = fit("name", span.name), fit("status", span.message)
    if not mended and not cut:
        return span
    for key in cut:
        if key in CUT_FLAGS:
            attributes[CUT_FLAGS[key]] = True
    for about, keys in ((v.EXPORT_MENDED, mended), (v.EXPORT_CUT, cut)):
        if keys:
            attributes[about] = cut_text(",".join(keys))
    return replace(span, name=name, message=message, attributes=attributes)


def shortened(line: str) -> str:
    """A line as ours are encoded, with its longest texts cut to somewhat more than `exportable` leaves of them.

    A decoder keeps every other thread waiting until it is through; this looks at a long line piece by piece.
    """
    if len(line) <= _LONG_LINE:
        return line
    pieces: list[str] = []
    done = 0
    start = line.find(':"') + 2
    while start > 1:
        end = _end_of_text(line, start)
        if end - start > _KEPT:
            keep = start
            while keep - start < _KEPT and (part := _PART.match(line, keep, end)) is not None:
                keep = part.end()
            if _LOW_HALF.match(line, keep):
                keep += 6
            pieces.append(line[done:keep])
            done = end
        start = line.find(':"', end) + 2
    return "".join([*pieces, line[done:]])


def _end_of_text(line: str, start: int) -> int:
    """Where the quote stands that ends the text which begins at `start`."""
    at = start
    while at < len(line):
        found = _END.search(line, at, at + _WINDOW)
        if found is not None:
            return found.start()
        at += _WINDOW - 8
    return line.rfind('"')
