"""What a fault makes of a call and of its answer: which bytes stand in their place, and what the record says of it.

Refuses to know which calls a fault falls on, and pipes: that a late answer is late is up to the edges.
"""

import json

from proxy import vocabulary as v
from proxy.connection import Connection, Step
from proxy.exchange import SERVER_TO_CLIENT, Exchange, Owed, answer_attributes, ended
from proxy.faults import Fault, Struck
from proxy.frames import Message, read_loose
from proxy.members import FrameError
from proxy.record import Place, Stamp, payload
from proxy.rounds import is_interim
from proxy.spans import INTERNAL, JSON, encode_attribute

INTERNAL_ERROR = -32603
"""The code of an injected JSON-RPC error: that of a server which broke (JSON-RPC 2.0, section 5.1)."""


def strike(wire: Connection, exchange: Exchange, now: Stamp) -> tuple[Struck | None, list[str]]:
    """The fault that falls on a call which policy has let through, and the line of its event; None for none.

    A further round of a call is no call of its own.
    """
    if wire.faults is None or exchange.method != "tools/call" or exchange.leg is not None:
        return None, []
    struck = wire.faults.strike(exchange.asked.canonical)
    return struck, [] if struck is None else [_event(wire, struck, exchange, now)]


def _event(wire: Connection, struck: Struck, exchange: Exchange, now: Stamp) -> str:
    fault, place, identity = struck.fault, exchange.place, wire.recorder.identity
    told: dict[str, JSON] = {
        "server_id": wire.server,
        "mcp_tool_name": exchange.asked.target,
        "name": exchange.asked.canonical,
        "fault": fault.kind,
        "rule": fault.rule,
        "call": struck.number,
        "call_span_id": place.span_id,
    }
    if fault.kind == "delay":
        told["seconds"] = fault.seconds
    if identity.agent_id:
        told["agent"] = identity.agent_id
    attributes = wire.recorder.fact("event", now, "", {v.EVENT_TYPE: "fault", v.EVENT_FIELDS: json.dumps(told)})
    own = Place(place.trace_id, wire.recorder.new_id(16), place.span_id)
    return wire.recorder.line(own, f"fault {fault.kind}", INTERNAL, (now.wall, now.wall), attributes)


def hold_back(wire: Connection, fault: Fault, exchange: Exchange, records: list[str], raw: bytes, now: Stamp) -> Step:
    """The step of a call that never reaches its server: an error of ours, or nothing ever (timeout).

    `raw` is its line, which is judged again where `records` cannot be written.
    """
    wire.from_client.withdraw(exchange)
    exchange.spoilt = (encode_attribute(v.FAULT, fault.kind),)
    if fault.kind == "timeout":
        wire.from_client.held.append(exchange)
        return Step(records, gate=True, opened=(exchange,), kept=raw)
    reply = _error(fault, exchange, modern=(exchange.version or wire.version) >= "2026")
    message = read_loose(reply).messages[0]
    own = Owed(exchange, message, now, wire.recorder.next_seq(), wire.version, True)
    return Step([*records, own.line(wire.recorder)], back=reply, gate=True, kept=raw)


def _error(fault: Fault, exchange: Exchange, *, modern: bool) -> bytes:
    """The answer of a call that fails. It has no mark of ours: the record says whose it is, and the agent must not."""
    if fault.form == "error":
        body = f'"error":{json.dumps({"code": INTERNAL_ERROR, "message": fault.message})}'
    else:
        result: dict[str, JSON] = {"content": [{"type": "text", "text": fault.message}], "isError": True}
        body = f'"result":{json.dumps(result | ({"resultType": "complete"} if modern else {}))}'
    return f'{{"jsonrpc":"2.0","id":{exchange.id_text},{body}}}\n'.encode("utf-8", "surrogateescape")


def spoil(wire: Connection, raw: bytes, now: Stamp) -> Step | None:
    """The step of a line from the server that answers a call whose answer is to be spoilt; None for any other line."""
    try:
        line = read_loose(raw)
    except FrameError:
        return None
    message = line.messages[0]
    exchange = wire.from_client.first(message.id_key) if message.is_answer and not line.batch else None
    fault = None if exchange is None else exchange.planned
    if exchange is None or fault is None or is_interim(message):
        return None
    exchange.planned = None
    wire.spoilt.discard(exchange.key)
    marks = [encode_attribute(v.FAULT, fault.kind)]
    if fault.kind == "delay":
        exchange.spoilt = tuple(marks)
        late = int(fault.seconds * 1e9)
        then = Stamp(now.mono + late, now.wall + late)
        return Step(wire.answer(wire.from_client, message, then, SERVER_TO_CLIENT), raw, wait=fault.seconds)
    _, _, outcome = answer_attributes(exchange, message)
    own = message.field_text("result") if message.fields.get("error") is None else message.field_text("error")
    marks += [encode_attribute(v.FAULT_OUTCOME, outcome), *payload(v.FAULT_RESULT, "fault.result", own or "")]
    if fault.kind == "lost":
        exchange.spoilt = tuple(marks)
        wire.from_client.take(exchange.key)
        outcome = "cancelled" if exchange.cancelled else "unanswered"
        return Step([ended(wire.recorder, exchange, now, outcome, [], version=wire.version)], kept=raw)
    text = _spoilt(fault, exchange, message)
    if text is None:
        return None
    exchange.spoilt = tuple(marks)
    shown = read_loose(text).messages[0]
    return Step(wire.answer(wire.from_client, shown, now, SERVER_TO_CLIENT), text)


def _spoilt(fault: Fault, exchange: Exchange, message: Message) -> bytes | None:
    """The line of a result without its content, or without the end of it; None for an error, which has none.

    Structured content goes in both: it says the same again.
    """
    result = message.fields.get("result")
    if not isinstance(result, dict):
        return None
    kept = {key: value for key, value in result.items() if key != "structuredContent"}
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    kept["content"] = [] if fault.kind == "empty" else _cut(blocks, fault.keep)
    return f'{{"jsonrpc":"2.0","id":{exchange.id_text},"result":{json.dumps(kept)}}}\n'.encode(
        "utf-8", "surrogateescape"
    )


def _cut(blocks: list[JSON], keep: int | None) -> list[JSON]:
    """The blocks up to the character where the text ends; of the text `keep` characters stay, or half of them."""
    texts = [text if isinstance(block, dict) and isinstance(text := block.get("text"), str) else "" for block in blocks]
    left = sum(map(len, texts)) // 2 if keep is None else keep
    found: list[JSON] = []
    for block, text in zip(blocks, texts, strict=True):
        if left <= 0:
            break
        found.append({**block, "text": text[:left]} if isinstance(block, dict) and text else block)
        left -= len(text)
    return found
