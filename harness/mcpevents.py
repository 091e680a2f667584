"""The `mcp_*` events of the trace, each from the fact that states it (the table of record.md section 5).

Refuses to know order: it is told each event's place.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from harness.calls import CALL, is_error
from harness.facts import Exchange, Origin, Other, Ruling
from harness.jsontext import JsonReader
from harness.marks import free, marked_event
from harness.moments import rfc3339
from harness.trace import Event
from proxy import vocabulary as v
from proxy.canonical import digest
from proxy.spans import JSON

ASKS_CLIENT = ("sampling/", "elicitation/", "roots/")
"""Methods by which a server asks something of the client."""
DEFINITION = ("name", "description", "inputSchema", "outputSchema", "annotations")
"""Members of a tool's definition whose digest is compared (verdicts.md section 4, tool_definitions_stable)."""
_OPENS = frozenset({"initialize", "server/discover"})
_META = "io.modelcontextprotocol/"


def negotiates(exchange: Exchange) -> int | None:
    """How well an answered exchange shows that its connection was negotiated, 0 best; None when it shows nothing.

    An `initialize` or `server/discover` counts when it was answered with a result; in the new era any other request
    does that carries a version, the first result before the first error.
    """
    if exchange.end is None or exchange.refused_by_us or not exchange.from_client:
        return None
    failed = exchange.outcome == "protocol_error"
    if exchange.method in _OPENS:
        return None if failed else 0
    if exchange.version is None or (failed and exchange.version < "2026"):
        return None
    return 1 if failed else 0


def event_of(kind: str, origin: Origin, fields: dict[str, JSON], seq: int, time_ns: int, span_id: str) -> Event:
    """An event of a connection, at its place."""
    return Event(kind, _whose(origin, fields), seq, rfc3339(time_ns), span_id)


def _whose(origin: Origin, fields: dict[str, JSON]) -> Mapping[str, JSON]:
    """The fields of an event of a connection. Two that say the same may be one object: a trace has very many."""
    found: dict[str, JSON] = {"server_id": origin.server, **fields}
    if origin.agent is not None:
        found["agent"] = origin.agent
    return found


def _object(text: str | None, cut: bool, reader: JsonReader) -> dict[str, JSON]:
    value = reader.read(text) if text is not None and not cut else None
    return value if isinstance(value, dict) else {}


def opening(exchange: Exchange, reader: JsonReader, seq: int) -> Iterator[Event]:
    """The two events of the exchange that negotiated a connection, at its answer."""
    params = _object(exchange.params, False, reader)
    result = _object(exchange.result, exchange.result_cut, reader) if exchange.method in _OPENS else {}
    meta = params.get("_meta")
    client = meta if isinstance(meta, dict) else {}
    version = exchange.version
    if exchange.method == "initialize" and isinstance(said := result.get("protocolVersion"), str):
        version = said
    initialized: dict[str, JSON] = {"protocol_version": version}
    if (info := params.get("clientInfo", client.get(f"{_META}clientInfo"))) is not None:
        initialized["client_info"] = info
    if (info := result.get("serverInfo")) is not None:
        initialized["server_info"] = info
    capabilities: dict[str, JSON] = {
        "client": params.get("capabilities", client.get(f"{_META}clientCapabilities")),
        "server": result.get("capabilities"),
    }
    for kind, fields in (
        ("mcp_connection_initialized", initialized),
        ("mcp_capabilities_negotiated", capabilities),
    ):
        yield event_of(kind, exchange.origin, fields, seq, exchange.end_ns, exchange.span_id)


def asked(exchange: Exchange, seq: int) -> Iterator[Event]:
    """The event of a request, at its place: a resource that is read, a prompt, or what the server asks the client."""
    yield from _asked(
        exchange.origin, exchange.method, exchange.from_client, exchange.outcome,
        (exchange.uri, exchange.prompt, exchange.name), seq, exchange.start_ns, exchange.span_id,
    )  # fmt: skip


def asked_alone(ruling: Ruling, seq: int) -> Iterator[Event]:
    """The same, of a ruling whose exchange was never written."""
    prompt = ruling.name.partition("/prompt:")[2] if ruling.name is not None else None
    yield from _asked(
        ruling.origin, ruling.method or "", ruling.from_client, "denied" if ruling.refuses else "unanswered",
        (ruling.uri, prompt, ruling.name), seq, ruling.start_ns, ruling.span_id,
    )  # fmt: skip


def _asked(
    origin: Origin,
    method: str,
    from_client: bool,
    outcome: str,
    names: tuple[str | None, str | None, str | None],
    seq: int,
    time_ns: int,
    span_id: str,
) -> Iterator[Event]:
    uri, prompt, name = names
    if not from_client:
        if method.startswith(ASKS_CLIENT):
            fields: dict[str, JSON] = {"method": method, "outcome": outcome}
            yield event_of("mcp_client_request", origin, fields, seq, time_ns, span_id)
    elif method == "resources/read":
        fields = {"uri": uri, "name": name, "outcome": outcome}
        yield event_of("mcp_resource_read", origin, fields, seq, time_ns, span_id)
    elif method == "prompts/get":
        fields = {"mcp_prompt_name": prompt, "name": name, "outcome": outcome}
        yield event_of("mcp_prompt_get", origin, fields, seq, time_ns, span_id)


def answer(exchange: Exchange, reader: JsonReader, seq: int) -> Iterator[Event]:
    """The events of an answer, at its place: a tool's result, a page of tools, what an input_required result asks."""
    if exchange.refused_by_us or exchange.outcome == "denied" or not exchange.from_client:
        return
    at = (seq, exchange.end_ns, exchange.span_id)
    if exchange.method == CALL and not exchange.interim:
        told = _of_result(exchange.origin, exchange.tool, exchange.name, is_error(exchange), exchange.result_cut)
        yield Event("mcp_tool_result", told, seq, rfc3339(exchange.end_ns), exchange.span_id)
    if exchange.outcome != "ok" or exchange.result is None or exchange.result_cut:
        return
    if exchange.method == "tools/list":
        page = _object(exchange.result, False, reader)
        fields: dict[str, JSON] = {"tools": _definitions(page.get("tools"))}
        if page.get("nextCursor") is not None:
            fields["more"] = True
        yield event_of("mcp_tools_discovered", exchange.origin, fields, *at)
    elif "inputRequests" in exchange.result or "\\u" in exchange.result:
        result = _object(exchange.result, False, reader)
        requests = result.get("inputRequests")
        if result.get("resultType") == "input_required" and isinstance(requests, dict):
            for request in requests.values():
                method = request.get("method") if isinstance(request, dict) else None
                # The answer travels in a later request of the client's own, so no outcome is known here.
                fields = {"method": method, "outcome": None, "inside": "input_required"}
                yield event_of("mcp_client_request", exchange.origin, fields, *at)


def _definitions(tools: JSON) -> list[JSON]:
    found: list[JSON] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            definition: dict[str, JSON] = {key: tool[key] for key in DEFINITION if key in tool}
            found.append({"name": tool.get("name"), "digest": digest(definition)})
    return found


def decided(ruling: Ruling, seq: int) -> Event:
    """The event of a decision."""
    told = _of_decision(
        ruling.origin, ruling.decision, ruling.method, ruling.reason, ruling.enforced, ruling.rule, ruling.name,
        ruling.malformed,
    )  # fmt: skip
    return Event("mcp_policy_decision", told, seq, rfc3339(ruling.start_ns), ruling.span_id)


@lru_cache(maxsize=256)
def _of_decision(
    origin: Origin,
    decision: str,
    method: str | None,
    reason: str | None,
    enforced: bool,
    rule: str | None,
    name: str | None,
    malformed: str | None,
) -> Mapping[str, JSON]:
    fields: dict[str, JSON] = {
        "decision": decision,
        "method": method,
        "reason": reason,
        "enforced": enforced,
        "rule": rule,
        "name": name,
    }
    if malformed is not None:
        fields["malformed"] = malformed
    return _whose(origin, fields)


@lru_cache(maxsize=256)
def _of_result(
    origin: Origin, tool: str | None, name: str | None, failed: bool | None, cut: bool
) -> Mapping[str, JSON]:
    return _whose(origin, {"mcp_tool_name": tool, "name": name, "is_error": failed, "content_truncated": cut})


def closed(fact: Other, seq: int) -> Event:
    """The event of a connection's end."""
    fields: dict[str, JSON] = {"reason": fact.attributes.get(v.CLOSE_REASON)}
    return event_of("mcp_connection_closed", fact.origin, fields, seq, fact.end_ns, fact.span_id)


def lost(origin: Origin, seq: int, time_ns: int, span_id: str) -> Event:
    """The event of a connection of which no end was written; time and span are those of its last fact."""
    return event_of("mcp_connection_closed", origin, {"reason": "lost"}, seq, time_ns, span_id)


def said(fact: Other, reader: JsonReader, seq: int) -> Event | None:
    """The event that the harness wrote; None when it has no type."""
    attributes: Mapping[str, object] = fact.attributes
    kind = attributes.get(v.EVENT_TYPE)
    if not isinstance(kind, str):
        return None
    text = attributes.get(v.EVENT_FIELDS)
    fields = _object(text if isinstance(text, str) else None, False, reader)
    event = Event(kind, free(fields), seq, rfc3339(fact.start_ns), fact.span_id)
    # Approvals come from a proxy, whose spans have a connection; what else says so is somebody's word.
    forged = kind == "approval" and not fact.origin.connection
    return marked_event(event) if forged or attributes.get(v.REPORTED) is True else event
