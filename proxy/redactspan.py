"""Secrets out of a span: its texts, and the sizes and digests that belong to them.

Refuses to know how a span is made; it gets attributes as encode_attribute wrote them.
"""

import json
import re
from collections.abc import Sequence

from proxy import vocabulary as v
from proxy.frames import CAP
from proxy.redact import Redactor
from proxy.sha import sha256_hex
from proxy.spans import JSON, Attribute, encode_attribute

_PAYLOADS = {
    v.TOOL_ARGUMENTS: "arguments",
    v.TOOL_RESULT: "result",
    v.RESULT: "result",
    v.PARAMS: "params",
    v.REQUEST: "request",
    v.FAULT_RESULT: "fault.result",
}
_OURS = frozenset({v.SPAN_KIND, v.DIRECTION, v.OUTCOME, v.DECISION, v.OPERATION, v.FAULT, v.FAULT_OUTCOME})
"""Attributes whose values are words of ours: a secret that is such a word must not make a span unreadable."""

_SERVER = re.compile(r"mcp/[A-Za-z0-9._-]+/")


def redacted_attributes(redactor: Redactor, attributes: Sequence[str]) -> tuple[list[str], int]:
    """The encoded attributes without secrets, and how many marks stand in them.

    Size and digest of a payload become those of its text as recorded. The end of a cut payload goes too, as far as it
    may hold the beginning of a secret.
    """
    found: list[str] = []
    total = 0
    parsed: list[dict[str, JSON]] = json.loads(f"[{','.join(attributes)}]")
    members = [(str(one["key"]), _value(one["value"])) for one in parsed]
    keys = {key for key, _ in members}
    about: dict[str, str] = {}
    for key, text in members:
        if key in about:
            found.append(about[key])
            continue
        if not isinstance(text, str) or key in _OURS:
            found.append(encode_attribute(key, text))
            continue
        # The server's id comes from the configuration, and a name without it would be another server's.
        server = _SERVER.match(text) if key == v.TOOL_CANONICAL else None
        known = "" if server is None else server.group()
        redacted, count = redactor.text(text[len(known) :])
        redacted = known + redacted
        total += count
        label = _PAYLOADS.get(key)
        cut = label is not None and v.payload_truncated(label) in keys
        if cut:
            redacted = redacted[: -redactor.margin]
        if label is None or redacted == text:
            found.append(encode_attribute(key, redacted))
            continue
        raw = redacted.encode("utf-8", "surrogateescape")
        if len(raw) > CAP:
            raw = raw[:CAP]
            redacted = raw.decode("utf-8", "surrogateescape")
            if not cut:
                found.append(encode_attribute(v.payload_truncated(label), True))
        found.append(encode_attribute(key, redacted))
        for name, value in (
            (v.payload_bytes(label), len(raw)),
            (v.payload_sha256(label), sha256_hex(raw)),
        ):
            about[name] = encode_attribute(name, value)
    return found, total


def _value(value: JSON) -> Attribute:
    """An attribute's value as encode_attribute was given it."""
    match value:
        case {"stringValue": str() as text}:
            return text
        case {"boolValue": bool() as flag}:
            return flag
        case {"intValue": str() as digits}:
            return int(digits)
        case {"doubleValue": int() | float() as number}:
            return float(number)
        case _:
            return str(value)
