"""A builder of spans as the proxy writes them, for tests of what reads them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from proxy import vocabulary as v
from proxy.spans import INTERNAL, SERVER, Attribute, Span

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_700_000_000_000_000_000


def ids() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{number:016x}"


@dataclass
class Wire:
    """One connection; each method adds the spans of one thing that happens on it."""

    server: str = "crm"
    connection: str = "c1"
    agent: str | None = None
    clock: list[int] = field(default_factory=lambda: [1000])
    names: Iterator[str] = field(default_factory=ids)
    spans: list[Span] = field(default_factory=list)
    seq: int = 0
    extra: dict[str, Attribute] = field(default_factory=dict)
    trust: str = "internal"

    def __post_init__(self) -> None:
        self.root = next(self.names)

    def tick(self) -> int:
        self.clock[0] += 1000
        return self.clock[0]

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def span(
        self,
        kind: str,
        name: str,
        attributes: dict[str, Attribute],
        mono: int,
        end: int | None = None,
        *,
        parent: str | None = None,
        span_id: str | None = None,
        seq: int | None = None,
        direction: str = "client_to_server",
    ) -> Span:
        common: dict[str, Attribute] = {
            v.SPAN_KIND: kind,
            v.SEQ: self.next_seq() if seq is None else seq,
            v.MONO: mono,
            v.DIRECTION: direction,
            v.CONNECTION: self.connection,
            v.SERVER_ID: self.server,
            v.SERVER_TRUST: self.trust,
            v.TRANSPORT: "stdio",
            **self.extra,
        }
        if self.agent is not None:
            common[v.AGENT_ID] = self.agent
        span = Span(
            trace_id=TRACE,
            span_id=span_id or next(self.names),
            parent_id=self.root if parent is None else parent,
            name=name,
            kind=SERVER if kind == "request" else INTERNAL,
            start_ns=START + mono,
            end_ns=START + (mono if end is None else end),
            attributes={**common, **attributes},
            links=((TRACE, self.root),),
        )
        self.spans.append(span)
        return span

    def opened(self) -> "Wire":
        self.span("connection_opened", "connection.opened", {}, self.tick())
        return self

    def closed(self, reason: str = "client_ended", recorded: int | None = None, dropped: int = 0) -> "Wire":
        attributes: dict[str, Attribute] = {
            v.CLOSE_REASON: reason,
            v.SPANS_RECORDED: len(self.spans) + 1 if recorded is None else recorded,
            v.SPANS_DROPPED: dropped,
        }
        self.span("connection_closed", f"mcp.connection {self.server}", attributes, self.tick(), span_id=self.root)
        return self

    def request(
        self,
        method: str,
        attributes: dict[str, Attribute],
        outcome: str = "ok",
        *,
        decision: str | None = None,
        enforced: bool = True,
        frame: str | None = None,
        answered: bool = True,
        written: bool = True,
        malformed: str | None = None,
        direction: str = "client_to_server",
        ours: bool = False,
    ) -> Span:
        """An exchange with its decision; `written` false leaves the exchange's own span out, as after a kill."""
        mono, seq, span_id = self.tick(), self.next_seq(), next(self.names)
        if decision is not None:
            ruling: dict[str, Attribute] = {
                v.METHOD: method,
                v.DECISION: decision,
                v.DECISION_RULE: "rule",
                v.DECISION_REASON: f"because {decision}",
                v.DECISION_ENFORCED: enforced,
                v.ID_TEXT: str(seq),
                **payload(v.REQUEST, "request", frame or "{}"),
            }
            for key in (v.TOOL_CANONICAL, v.RESOURCE_URI):
                if key in attributes:
                    ruling[key] = attributes[key]
            if malformed is not None:
                ruling[v.MALFORMED] = malformed
            self.span("decision", f"decision {method}", ruling, mono, parent=span_id, seq=seq, direction=direction)
        own: dict[str, Attribute] = {
            v.METHOD: method,
            v.REQUEST_ID: str(seq),
            v.ID_TEXT: str(seq),
            v.OUTCOME: outcome,
            **attributes,
        }
        end = self.tick()
        if answered:
            own |= {v.RESULT_SEQ: self.next_seq(), v.RESULT_MONO: end}
        else:
            own = {key: value for key, value in own.items() if key not in (v.RESULT, v.TOOL_RESULT)}
        if ours:
            own[v.REFUSED_BY_US] = True
        span = self.span("request", method, own, mono, end, span_id=span_id, seq=seq, direction=direction)
        if not written:
            self.spans.remove(span)
        return span

    def initialize(self, outcome: str = "ok") -> "Wire":
        params = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "agent"}}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "crm"}}
        attributes = {
            **payload(v.PARAMS, "params", json.dumps(params)),
            **payload(v.RESULT, "result", json.dumps(result)),
        }
        if outcome == "ok":
            attributes[v.PROTOCOL_VERSION] = "2025-11-25"
        self.request("initialize", attributes, outcome)
        return self

    def call(
        self,
        tool: str,
        arguments: str | None = '{"customer_id":"CUST-004"}',
        result: str = '{"content":[{"type":"text","text":"x"}]}',
        outcome: str = "ok",
        decision: str = "allow",
        *,
        enforced: bool = True,
        frame: str | None = None,
        answered: bool = True,
        written: bool = True,
        malformed: str | None = None,
        ours: bool = False,
    ) -> "Wire":
        attributes: dict[str, Attribute] = {
            v.OPERATION: "execute_tool",
            v.TOOL_NAME: tool,
            v.TOOL_CANONICAL: f"mcp/{self.server}/{tool}",
            v.PROTOCOL_VERSION: "2025-11-25",
            **payload(v.TOOL_RESULT, "result", result),
        }
        if arguments is not None:
            attributes |= payload(v.TOOL_ARGUMENTS, "arguments", arguments)
        if frame is None:
            inner = "" if arguments is None else f',"arguments":{arguments}'
            frame = f'{{"jsonrpc":"2.0","id":{self.seq + 1},"method":"tools/call","params":{{"name":"{tool}"{inner}}}}}'
        self.request(
            "tools/call",
            attributes,
            outcome,
            decision=decision,
            enforced=enforced,
            frame=frame,
            answered=answered,
            written=written,
            malformed=malformed,
            ours=ours,
        )
        return self

    def unread(self, frame: str, decision: str = "deny", *, enforced: bool = True, method: str | None = None) -> "Wire":
        """A frame that has no one reading: a decision alone, whose parent is the connection."""
        attributes: dict[str, Attribute] = {
            v.DECISION: decision,
            v.DECISION_RULE: "one reading",
            v.DECISION_REASON: "a key is repeated",
            v.DECISION_ENFORCED: enforced,
            v.MALFORMED: "a key is repeated",
            **payload(v.REQUEST, "request", frame),
        }
        if method is not None:
            attributes[v.METHOD] = method
        self.span("decision", "decision", attributes, self.tick())
        return self


def payload(key: str, label: str, text: str, *, truncated: bool = False) -> dict[str, Attribute]:
    raw = text.encode("utf-8", "surrogatepass")
    found: dict[str, Attribute] = {
        key: text,
        v.payload_bytes(label): len(raw),
        v.payload_sha256(label): sha256(raw).hexdigest(),
    }
    if truncated:
        found[v.payload_truncated(label)] = True
    return found


def foreign(number: int = 1) -> Span:
    """A span of another instrumentation, as full of gen_ai attributes as they are."""
    attributes: dict[str, Attribute] = {v.OPERATION: "execute_tool", v.TOOL_NAME: "crm", v.METHOD: "tools/call"}
    return Span(TRACE, f"{number:08x}ffffffff", "", "execute_tool crm", 3, 1, 2, attributes, scope="another")


def two_processes() -> list[Span]:
    clock = [0]
    names = Wire().names
    a = Wire("crm", "c-a", "one", clock, names)
    b = Wire("ticketing", "c-b", "two", clock, names)
    for wire in (a, b):
        wire.opened().initialize()
    for number in range(3):
        a.call("read", f'{{"n":{number}}}')
        b.call("write", f'{{"n":{number}}}')
        b.call("evil", outcome="denied", decision="deny", ours=True)
    b.unread('{"method":"tools/call","params":{"name":"a","name":"b"}}')
    a.call("read", written=False)
    b.closed()
    return [*a.spans, *b.spans]
