"""Spans of one connection as lines of text, made fast: what stays the same is encoded once.

Refuses to know files and policy; clocks and random ids are given to it.
"""

from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring_ascii as quote
from typing import TYPE_CHECKING, NamedTuple, Protocol

from proxy import vocabulary as v
from proxy.frames import CAP
from proxy.sha import sha256_hex
from proxy.spans import ERROR, INTERNAL, Attribute, encode_attribute, number_template, template

if TYPE_CHECKING:
    from proxy.offered import Offered
    from proxy.redact import Redactor


class Stamp(NamedTuple):
    """A moment: CLOCK_MONOTONIC and Unix time, both in nanoseconds."""

    mono: int
    wall: int


class Identity(NamedTuple):
    """Whose connection this is. Empty text, or trial None, is not recorded.

    `trace_id` and `parent_id` are the run's context (32 and 16 hex digits), "" when there is none. `command_sha256` and
    `policy_sha256` are those of `proxy.digests`.
    """

    server_id: str
    trust: str
    transport: str
    connection: str
    run_id: str = ""
    scenario_id: str = ""
    trial: int | None = None
    agent_id: str = ""
    trace_id: str = ""
    parent_id: str = ""
    command_sha256: str = ""
    policy_sha256: str = ""


class Place(NamedTuple):
    """Where a span stands: its trace, its own id and its parent's."""

    trace_id: str
    span_id: str
    parent_id: str


def payload_template(key: str, label: str) -> str:
    """A %-format for the attributes of a payload, to be filled with its quoted text, its size and its digest."""
    return f"{template(key)},{number_template(v.payload_bytes(label))},{template(v.payload_sha256(label))}"


def _payload_parts(key: str, label: str) -> tuple[str, ...]:
    """What stands before the text, the size and the digest of a payload, and behind them."""
    return tuple(payload_template(key, label).replace("%d", "%s").split("%s"))


_PAYLOADS = {
    (key, label): _payload_parts(key, label)
    for key, label in (
        (v.TOOL_ARGUMENTS, "arguments"),
        (v.TOOL_RESULT, "result"),
        (v.RESULT, "result"),
        (v.PARAMS, "params"),
        (v.REQUEST, "request"),
        (v.FAULT_RESULT, "fault.result"),
    )
}


def payload(key: str, label: str, text: str, *, truncated: bool = False) -> list[str]:
    """The attributes of one payload: its text, size in bytes, digest, and whether it was cut (record.md section 3)."""
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) > CAP:
        raw = raw[:CAP]
        text = raw.decode("utf-8", "surrogateescape")
        truncated = True
    before, size, digest, behind = _PAYLOADS[key, label]
    encoded = f'{before}{quote(text)}{size}{len(raw)}{digest}"{sha256_hex(raw)}"{behind}'
    return [encoded, encode_attribute(v.payload_truncated(label), True)] if truncated else [encoded]


_PLACE = number_template(v.SEQ, v.MONO)


class Shape(NamedTuple):
    """What is the same in all spans of a name and kind that are no errors, around their ids, times and attributes."""

    before: str
    named: str
    common: str
    behind: str


class Recorder:
    """Makes the lines of one connection. `new_id` gives random lower-case hex digits, as many as it is asked for.

    `redactor`: takes the secrets out of every line; None where there are none.
    """

    redactor: "Redactor | None" = None
    offered: "Offered | None" = None
    """Who is told of each list of tools; None where no rule names one."""

    def __init__(self, identity: Identity, version: str, new_id: Callable[[int], str]) -> None:
        self.identity = identity
        self.new_id = new_id
        self.trace_id = identity.trace_id or new_id(32)
        self.connection_span = new_id(16)
        self.parent_id = identity.parent_id or self.connection_span
        """Of spans whose request names no parent."""
        self.seq = 0
        self.calls = 0
        """Decisions on calls of tools so far."""
        common: dict[str, Attribute] = {
            v.CONNECTION: identity.connection,
            v.SERVER_ID: identity.server_id,
            v.SERVER_TRUST: identity.trust,
            v.TRANSPORT: identity.transport,
            v.NETWORK_TRANSPORT: "tcp" if identity.transport == "http" else "pipe",
        }
        for key, text in (
            (v.RUN_ID, identity.run_id),
            (v.SCENARIO_ID, identity.scenario_id),
            (v.AGENT_ID, identity.agent_id),
        ):
            if text:
                common[key] = text
        if identity.trial is not None:
            common[v.TRIAL] = identity.trial
        # A colour for each server, where a backend has one for each service.
        service = f"{v.SCOPE}/{identity.server_id}"
        self._head = (
            f'{{"resourceSpans":[{{"resource":{{"attributes":[{encode_attribute("service.name", service)}]}},'
            f'"scopeSpans":[{{"scope":{{"name":"{v.SCOPE}","version":{quote(version)}}},"spans":[{{"traceId":"'
        )
        self.common = ",".join([encode_attribute(key, value) for key, value in common.items()])
        """The encoded attributes of every span."""
        self._taken = 0
        self._link = f'],"links":[{{"traceId":"{self.trace_id}","spanId":"{self.connection_span}"}}]'

    def next_seq(self) -> int:
        """The next place in the order of this connection."""
        if self._taken:
            seq, self._taken = self._taken, 0
            return seq
        self.seq += 1
        return self.seq

    def back_to(self, seq: int) -> None:
        """Have the next place be this one, which was taken for a line that is only now looked at."""
        self._taken = seq

    def shape(self, name: str, kind: int) -> Shape:
        """What `line` puts around a span in the trace of the connection."""
        return Shape(
            f'{self._head}{self.trace_id}","spanId":"',
            f'","name":{quote(name)},"kind":{kind},"startTimeUnixNano":"',
            f'","attributes":[{self.common},',
            f"{self._link}}}]}}]}}]}}",
        )

    def place(self, traceparent: str | None) -> Place:
        """A new span's place: under a valid `_meta.traceparent`, else the run's context, else the connection."""
        parent = parse_traceparent(traceparent) if traceparent is not None else None
        span_id = self.new_id(16)
        # A secret of 16 or 32 hex digits could be sent as an id, where no mark can stand.
        if parent is not None and (self.redactor is None or not self.redactor.finds(f"{parent[0]}-{parent[1]}")):
            return Place(parent[0], span_id, parent[1])
        return Place(self.trace_id, span_id, self.parent_id)

    def line(
        self,
        place: Place,
        name: str,
        kind: int,
        times: tuple[int, int],
        attributes: Iterable[str],
        failure: str | None = None,
        before: tuple[str, str] | None = None,
    ) -> str:
        """One span as its line, without the line feed; `failure` is the message of a status of error.

        `before` is the trace and span id of the round before, which is linked as the connection is.
        """
        trace_id, span_id, parent_id = place
        if self.redactor is not None:
            name, attributes, failure = self._redacted(self.redactor, name, list(attributes), failure)
        link = self._link
        if before is not None:
            link = f'{link[:-1]},{{"traceId":"{before[0]}","spanId":"{before[1]}"}}]'
        if failure is not None:
            link = f'{link},"status":{{"code":{ERROR},"message":{quote(failure)}}}'
        parent = f'","parentSpanId":"{parent_id}' if parent_id else ""
        return (
            f'{self._head}{trace_id}","spanId":"{span_id}{parent}","name":{quote(name)},"kind":{kind},'
            f'"startTimeUnixNano":"{times[0]}","endTimeUnixNano":"{times[1]}","attributes":[{self.common},'
            f"{','.join(attributes)}{link}}}]}}]}}]}}"
        )

    def _redacted(
        self, redactor: "Redactor", name: str, attributes: list[str], failure: str | None
    ) -> tuple[str, list[str], str | None]:
        # One look at the whole line, escapes and all, before it is taken apart: most lines have no secret.
        line = " ".join((*attributes, name, failure or ""))
        if '.truncated"' not in line and not redactor.finds(line):
            return name, attributes, failure
        from proxy.redactspan import redacted_attributes  # noqa: PLC0415  (few connections ever need it)

        attributes, total = redacted_attributes(redactor, attributes)
        name, count = redactor.text(name)
        total += count
        if failure is not None:
            failure, count = redactor.text(failure)
            total += count
        if total:
            attributes.append(encode_attribute(v.REDACTIONS, total))
        return name, attributes, failure

    def also(self, attributes: Mapping[str, Attribute]) -> None:
        """Attributes that every further span of this connection has."""
        self.common = ",".join([self.common, *(encode_attribute(key, value) for key, value in attributes.items())])

    def fact(self, kind: str, now: Stamp, direction: str, attributes: Mapping[str, Attribute]) -> list[str]:
        """The attributes that every zero-length span begins with, and those given; `direction` "" where it has none."""
        return self.fact_at(kind, self.next_seq(), now, direction, attributes)

    def fact_at(
        self, kind: str, seq: int, now: Stamp, direction: str, attributes: Mapping[str, Attribute]
    ) -> list[str]:
        """The same at a place in the order that is taken already."""
        encoded = [encode_attribute(v.SPAN_KIND, kind), _PLACE % (seq, now.mono)]
        if direction:
            encoded.append(encode_attribute(v.DIRECTION, direction))
        encoded += [encode_attribute(key, value) for key, value in attributes.items()]
        return encoded

    def opened(self, now: Stamp) -> str:
        """The line that says that the connection was made."""
        place = Place(self.trace_id, self.new_id(16), self.connection_span)
        made_of = ((v.COMMAND_SHA256, self.identity.command_sha256), (v.POLICY_SHA256, self.identity.policy_sha256))
        attributes = self.fact("connection_opened", now, "", {key: text for key, text in made_of if text})
        return self.line(place, "connection.opened", INTERNAL, (now.wall, now.wall), attributes)

    def closed(self, start: Stamp, now: Stamp, attributes: Mapping[str, Attribute]) -> str:
        """The line that says how the connection ended."""
        place = Place(self.trace_id, self.connection_span, self.identity.parent_id)
        encoded = self.fact("connection_closed", now, "", attributes)
        name = f"mcp.connection {self.identity.server_id}"
        return self.line(place, name, INTERNAL, (start.wall, now.wall), encoded)


_HEX = frozenset("0123456789abcdef")


def parse_traceparent(text: str) -> tuple[str, str] | None:
    """Trace id and parent id of a traceparent (W3C Trace Context, section 3.2), or None where it is malformed."""
    parts = text.split("-")
    if len(parts) < 4 or [len(part) for part in parts[:4]] != [2, 32, 16, 2]:
        return None
    version, trace_id, parent_id, _ = parts[:4]
    if version == "ff" or (version == "00" and len(parts) != 4) or not all(_HEX.issuperset(part) for part in parts[:4]):
        return None
    if not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return trace_id, parent_id


class Due(Protocol):
    """An answer that is owed its line."""

    def line(self, recorder: Recorder) -> str:
        """The line."""
