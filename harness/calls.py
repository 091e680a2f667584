"""The tool calls that an exchange, its ruling, or a ruling alone give (record.md section 5).

Refuses to know order and events.
"""

import json
from collections.abc import Iterator
from dataclasses import replace

from harness.facts import Exchange, Ruling
from harness.jsontext import JsonReader
from harness.moments import rfc3339
from harness.trace import Outcome, ToolCall
from proxy.frames import Message, read_loose
from proxy.glob import encode_tool_name
from proxy.members import FrameError
from proxy.readings import Reading, readings
from proxy.spans import JSON

CALL = "tools/call"


def is_call(method: str) -> bool:
    """Whether a method is tools/call to some reader: one that folds case, or cuts blanks and U+0000."""
    return method.strip(" \t\r\n\0").casefold() == CALL


def calls_of(exchange: Exchange | None, ruling: Ruling | None, reader: JsonReader, seq: int) -> Iterator[ToolCall]:
    """The calls of one frame, all at the place `seq`: one for a plain frame, one a name for one with several readings.

    An answer belongs to the name that the proxy read. With a ruling alone the frame may have reached the server or
    not: the call is `unanswered`, or `denied`.
    """
    seen = _named(ruling) if ruling is not None and not ruling.plain and ruling.request is not None else []
    if exchange is not None and exchange.method == CALL:
        if exchange.tool is not None or exchange.outcome != "denied":
            yield _answered(exchange, ruling, reader, seq)
        seen = [reading for reading in seen if reading.name != exchange.tool]
    elif ruling is not None and ruling.method == CALL and not seen and (ruling.name is not None or not ruling.refuses):
        yield _alone(ruling, reader, seq)
    if ruling is not None:
        yield from (_read(reading, exchange, ruling, reader, seq) for reading in seen)


def joined(first: ToolCall, later: ToolCall, duration_ms: float | None) -> ToolCall:
    """One logical call of its first and a later round: what was asked first, and what was answered last."""
    return replace(
        first,
        result_seq=later.result_seq,
        outcome=later.outcome,
        result=later.result,
        result_truncated=later.result_truncated,
        is_error=later.is_error,
        duration_ms=duration_ms,
        rounds=(*first.rounds, later.request_id or "null"),
    )


def _named(ruling: Ruling) -> list[Reading]:
    raw = (ruling.request or "").encode("utf-8", "surrogateescape")
    return [reading for reading in readings(raw) if reading.name is not None and is_call(reading.method)]


def _answered(exchange: Exchange, ruling: Ruling | None, reader: JsonReader, seq: int) -> ToolCall:
    arguments, arguments_text = _arguments(exchange.arguments, exchange.arguments_cut, reader)
    result: JSON = None
    if exchange.result is not None and not exchange.result_cut:
        result = reader.read_whole(exchange.result)
    duration = None if exchange.end is None else (exchange.end.mono - exchange.at.mono) / 1e6
    origin = exchange.origin
    return ToolCall(
        name=exchange.name,
        arguments=arguments,
        mcp_server_id=origin.server,
        mcp_tool_name=exchange.tool,
        mcp_method=CALL,
        trust=origin.trust,
        mcp_transport=origin.transport,
        seq=seq,
        result_seq=exchange.end_seq or None,
        outcome="unanswered" if exchange.interim else exchange.outcome,
        result=result,
        is_error=is_error(exchange),
        decision=ruling.decision if ruling is not None else None,
        decision_enforced=ruling.enforced if ruling is not None else None,
        decision_reason=ruling.reason if ruling is not None else None,
        agent=origin.agent,
        started_at=rfc3339(exchange.start_ns),
        duration_ms=duration,
        span_id=exchange.span_id,
        connection=origin.connection,
        request_id=exchange.id_text,
        arguments_text=arguments_text,
        arguments_truncated=exchange.arguments_cut,
        result_truncated=exchange.result_cut,
        fault=exchange.fault,
        server_outcome=_by_the_server(exchange, ruling),
    )


def _by_the_server(exchange: Exchange, ruling: Ruling | None) -> Outcome | None:
    """How the server itself answered, where that is not what was given for its answer.

    Where an error of ours stands for the answer to a call that was let through, nobody knows: it may be done.
    """
    replaced = exchange.refused_by_us and exchange.outcome == "protocol_error" and exchange.fault is None
    if exchange.server_outcome is None and replaced and ruling is not None and not ruling.refuses:
        return "unanswered"
    return exchange.server_outcome


def is_error(exchange: Exchange) -> bool | None:
    """Whether the answer was an error; None without an answer, also where it only asked for input."""
    if exchange.interim:
        return None
    match exchange.outcome:
        case "ok":
            return False
        case "unanswered" | "cancelled":
            return None
        case _:
            return None if exchange.end is None else True


def _alone(ruling: Ruling, reader: JsonReader, seq: int) -> ToolCall:
    """The call of a ruling whose exchange was never written: the proxy, or the whole connection, was cut off."""
    tool: str | None = None
    text: str | None = None
    if ruling.request is not None and not ruling.request_cut:
        try:
            message = read_loose(ruling.request.encode("utf-8", "surrogateescape")).messages[0]
            tool, text = _member(message, "name"), message.given_text("arguments")
        except FrameError:
            pass
    arguments, arguments_text = _arguments(text, ruling.request_cut, reader)
    return _attempt(ruling, None, ruling.name, tool, arguments, arguments_text, ruling.request_cut, seq)


def _read(reading: Reading, exchange: Exchange | None, ruling: Ruling, reader: JsonReader, seq: int) -> ToolCall:
    """The call that one of several readings gives."""
    tool = reading.name or ""
    name = f"mcp/{ruling.origin.server}/{encode_tool_name(tool)}"
    text: str | None = None
    if not ruling.request_cut and ruling.request is not None:
        text = _arguments_text(ruling.request, tool)
    if text is None and reading.arguments is not None:
        text = _dump(reading.arguments)
    arguments, arguments_text = _arguments(text, ruling.request_cut, reader)
    return _attempt(ruling, exchange, name, tool, arguments, arguments_text, ruling.request_cut, seq)


def _attempt(
    ruling: Ruling,
    exchange: Exchange | None,
    name: str | None,
    tool: str | None,
    arguments: JSON,
    arguments_text: str | None,
    cut: bool,
    seq: int,
) -> ToolCall:
    outcome: Outcome = "denied" if ruling.refuses else "unanswered"
    origin = ruling.origin
    return ToolCall(
        name=name,
        arguments=arguments,
        mcp_server_id=origin.server,
        mcp_tool_name=tool,
        mcp_method=CALL,
        trust=origin.trust,
        mcp_transport=origin.transport,
        seq=seq,
        result_seq=exchange.end_seq or None if exchange is not None else None,
        outcome=outcome,
        decision=ruling.decision,
        decision_enforced=ruling.enforced,
        decision_reason=ruling.reason,
        agent=origin.agent,
        started_at=rfc3339(ruling.start_ns),
        span_id=ruling.span_id,
        connection=origin.connection,
        request_id=ruling.id_text,
        arguments_text=arguments_text,
        arguments_truncated=cut,
    )


def _arguments(text: str | None, cut: bool, reader: JsonReader) -> tuple[JSON, str | None]:
    """The value of the arguments' text, and the text itself where the value does not tell all of it."""
    if text is None or cut:
        return None, text
    value = reader.read(text)
    return value, text if reader.lost else None


def _arguments_text(request: str, tool: str) -> str | None:
    """The exact text of `arguments` in the one message of the frame that names `tool`; None where it is not one."""
    try:
        line = read_loose(request.encode("utf-8", "surrogateescape"))
    except FrameError:
        return None
    texts = [message.given_text("arguments") for message in line.messages if _member(message, "name") == tool]
    return texts[0] if len(texts) == 1 else None


def _member(message: Message, name: str) -> str | None:
    value = message.given.get(name)
    return value if isinstance(value, str) else None


def _dump(value: JSON) -> str | None:
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return None
