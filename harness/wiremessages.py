"""The events `mcp_client_message` and `mcp_server_message`: what each side told the other beside calls and results.

Refuses to know order: it is told each event's place.
"""

from collections.abc import Iterator

from harness.beside import has_one_reading, is_telling, rest_of
from harness.calls import CALL
from harness.facts import Exchange, Other, Ruling
from harness.jsontext import JsonReader
from harness.loosefacts import PARAMS_CUT, PARTS
from harness.mcpevents import event_of
from harness.trace import Event
from proxy import vocabulary as v
from proxy.spans import JSON

CLIENT, SERVER = "mcp_client_message", "mcp_server_message"

_IN_OTHER_EVENTS = frozenset({"protocolVersion", "capabilities", "serverInfo"})
"""Members of the answer that opens a connection which the events of its opening have already."""


def sent(exchange: Exchange | None, ruling: Ruling | None, reader: JsonReader, seq: int) -> Iterator[Event]:
    """What the client sent beside a call's name and arguments, or in another request; and what a server's request says.

    A frame with more than one reading is given as its text. What was refused says so by its outcome.
    """
    fact: Exchange | Ruling | None = exchange or ruling
    if fact is None:
        return
    at = (seq, fact.start_ns, fact.span_id)

    def event(method: str | None, part: str, content: JSON, *, cut: bool = False) -> Event:
        kind = CLIENT if fact.from_client else SERVER
        fields = _fields(method, part, content, cut=cut, refused=_is_refused(exchange, ruling))
        return event_of(kind, fact.origin, fields, *at)

    if ruling is not None and ruling.request is not None and not ruling.plain and ruling.from_client:
        alone = exchange is None and fact.method != CALL
        if ruling.malformed is not None or alone or not has_one_reading(ruling.request):
            yield event(fact.method, "frame", ruling.request, cut=ruling.request_cut)
        elif (rest := rest_of(ruling.request)) is not None:
            yield event(fact.method, "params", reader.read(rest))
    elif ruling is not None and ruling.beside is not None and ruling.from_client:
        yield event(fact.method, "params", reader.read(ruling.beside))
    elif ruling is not None and exchange is None and ruling.request is not None and not ruling.from_client:
        yield event(fact.method, "frame", ruling.request, cut=ruling.request_cut)
    if exchange is None or exchange.method == CALL:
        return
    text = exchange.sent if exchange.from_client else exchange.params
    if exchange.params_cut or is_telling(text):
        content = _content(text, exchange.params_cut, reader)
        yield event(exchange.method, "params", content, cut=exchange.params_cut)


def answered(exchange: Exchange, opens: bool, reader: JsonReader, seq: int) -> Iterator[Event]:
    """What an answer says that no tool call has: a client's, or a server's to any other request, or to a call that goes
    on.

    `opens`: it opened its connection, and the events of that have a part of it.
    """
    if not exchange.from_client:
        yield from _answer_of_client(exchange, reader, seq)
        return
    if exchange.refused_by_us or exchange.outcome == "denied":
        return
    content, cut = _content(exchange.result, exchange.result_cut, reader), exchange.result_cut
    if opens and isinstance(content, dict):
        content = {key: value for key, value in content.items() if key not in _IN_OTHER_EVENTS}
    if not cut and (content == {} or not is_telling(exchange.result)):
        return
    fields = _fields(exchange.method, "error" if exchange.outcome == "protocol_error" else "result", content, cut=cut)
    for key, value in (("uri", exchange.uri), ("name", exchange.name)):
        if value is not None:
            fields[key] = value
    yield event_of(SERVER, exchange.origin, fields, seq, exchange.end_ns, exchange.span_id)


def _answer_of_client(exchange: Exchange, reader: JsonReader, seq: int) -> Iterator[Event]:
    text, cut = exchange.sent, exchange.result_cut
    if text is not None or cut:
        fields = _fields(
            exchange.method, "answer", _content(text, cut, reader), cut=cut, refused=exchange.outcome == "denied"
        )
        yield event_of(CLIENT, exchange.origin, fields, seq, exchange.end_ns, exchange.span_id)


def loose(fact: Other, reader: JsonReader, seq: int) -> Event:
    """The event of a notification, a broken line or a stray answer that says something."""
    told = fact.attributes
    text, method = told.get(v.PARAMS), told.get(v.METHOD)
    cut = told.get(PARAMS_CUT) is True
    content = _content(text if isinstance(text, str) else None, cut, reader)
    kind = SERVER if told.get(v.DIRECTION) == "server_to_client" else CLIENT
    fields = _fields(method if isinstance(method, str) else None, PARTS[fact.kind], content, cut=cut)
    return event_of(kind, fact.origin, fields, seq, fact.start_ns, fact.span_id)


def _fields(
    method: str | None, part: str, content: JSON, *, cut: bool = False, refused: bool = False
) -> dict[str, JSON]:
    told: dict[str, JSON] = {"method": method, "part": part, "content": content}
    told |= {"content_truncated": True} if cut else {}
    return {**told, "outcome": "denied"} if refused else told


def _content(text: str | None, cut: bool, reader: JsonReader) -> JSON:
    """What a text says; of one that was cut, what is left of it."""
    return text if text is None or cut else reader.read_whole(text)


def _is_refused(exchange: Exchange | None, ruling: Ruling | None) -> bool:
    if exchange is None:
        return ruling is not None and ruling.refuses
    if not exchange.from_client:
        return exchange.outcome == "denied"
    # What was let through may have reached its server, whatever error of ours stands for the answer.
    let_through = exchange.outcome == "unanswered" or (ruling is not None and not ruling.refuses)
    return exchange.outcome == "denied" or (exchange.refused_by_us and not let_through)
