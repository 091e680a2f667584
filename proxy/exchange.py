"""A request and its answer, and the table of those that are open, for one side of a connection.

Refuses to know policy and bytes; it makes of an exchange the attributes of its span.
"""

from collections import deque
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple

from proxy import vocabulary as v
from proxy.frames import Message
from proxy.ids import IdKey, id_key
from proxy.judging import Judgement
from proxy.record import Place, Recorder, Stamp, payload
from proxy.rounds import CallKey, Leg
from proxy.spans import JSON, SERVER, encode_attribute, number_template, template

CLIENT_TO_SERVER, SERVER_TO_CLIENT = "client_to_server", "server_to_client"

_REQUEST = template(v.SPAN_KIND, v.METHOD, v.REQUEST_ID, v.ID_TEXT, v.DIRECTION)
_PLACE = number_template(v.SEQ, v.MONO)
_EXECUTE = encode_attribute(v.OPERATION, "execute_tool")
_ANSWERED = number_template(v.RESULT_SEQ, v.RESULT_MONO)

NOT_OUR_ERRORS = frozenset({-32700, -32600, -32601, -32602, -32002})
"""Codes that do not make a SERVER span an error: the caller's fault (OpenTelemetry MCP conventions 0.1.0)."""


class Asked(NamedTuple):
    """A request as it was judged, its place in the connection's order, and which way it went.

    `cut`: the message is not whole, and has no more than its id, method and target.
    """

    one: Judgement
    seq: int
    direction: str
    cut: bool


@dataclass(slots=True)
class Exchange:
    """An open request. `version` is the protocol version that the request itself carries.

    `asked` is what its attributes are made of; they are made once it has been sent, so that it need not wait for them.
    `call` is what it calls, where an answer may ask for another round; `leg` is set in a round that is not the first.
    """

    place: Place
    name: str
    method: str
    start: Stamp
    id_text: str
    key: IdKey
    asked: Asked | None
    version: str = ""
    call: CallKey | None = None
    leg: Leg | None = None
    reused: bool = False
    cancelled: bool = False
    interim: bool = False
    _encoded: list[str] = field(default_factory=list)

    def attributes(self) -> list[str]:
        """The encoded attributes of the request."""
        if self.asked is not None:
            self._encoded = _request_attributes(self, self.asked)
            self.asked = None
        return self._encoded


def _request_attributes(exchange: Exchange, asked: Asked) -> list[str]:
    one, message, method = asked.one, asked.one.message, exchange.method
    key, id_text = exchange.key[1], exchange.id_text
    plain_id = key if isinstance(key, str) else id_text
    attributes = [
        _REQUEST % ('"request"', quote(method), quote(plain_id), quote(id_text), quote(asked.direction)),
        _PLACE % (asked.seq, exchange.start.mono),
    ]
    if one.canonical:
        attributes.append(encode_attribute(v.TOOL_CANONICAL, one.canonical))
    label = "arguments" if method == "tools/call" else "params"
    if method == "tools/call":
        attributes.append(_EXECUTE)
        if one.target:
            attributes.append(encode_attribute(v.TOOL_NAME, one.target))
        arguments = member_text(message, "arguments")
        if arguments is not None:
            attributes += payload(v.TOOL_ARGUMENTS, label, arguments)
    else:
        if method == "prompts/get" and one.target:
            attributes.append(encode_attribute(v.PROMPT_NAME, one.target))
        if method == "resources/read" and one.target:
            attributes.append(encode_attribute(v.RESOURCE_URI, one.target))
        params = message.members.get("params")
        if params is not None and not asked.cut:
            attributes += payload(v.PARAMS, label, message.text_of(params))
    if asked.cut:
        attributes.append(encode_attribute(v.payload_truncated(label), True))
    return attributes


@dataclass(slots=True)
class Exchanges:
    """The open requests of one side, by typed id; a reused open id keeps both, answered in order (wire rule 3)."""

    open: dict[IdKey, deque[Exchange]] = field(default_factory=dict)

    def add(self, exchange: Exchange) -> None:
        """Take an exchange in."""
        queue = self.open.setdefault(exchange.key, deque())
        if queue:
            exchange.reused = True
            for other in queue:
                other.reused = True
        queue.append(exchange)

    def take(self, key: IdKey | None) -> Exchange | None:
        """The exchange that an answer with this id ends, or None where no request asked for it."""
        queue = self.open.get(key) if key is not None else None
        if key is None or not queue:
            return None
        exchange = queue.popleft()
        if not queue:
            del self.open[key]
        return exchange

    def first(self, key: IdKey | None) -> Exchange | None:
        """The exchange that `take` would give."""
        queue = self.open.get(key) if key is not None else None
        return queue[0] if queue else None

    def withdraw(self, exchange: Exchange) -> None:
        """Take out an exchange whose request was not sent after all."""
        queue = self.open.get(exchange.key)
        if queue is not None and exchange in queue:
            queue.remove(exchange)
            if not queue:
                del self.open[exchange.key]

    def cancel(self, key: IdKey | None) -> bool:
        """Note that the requester gave up on a request, whose answer may still come; whether there is such a one."""
        queue = self.open.get(key, ()) if key is not None else ()
        for exchange in queue:
            exchange.cancelled = True
        return bool(queue)

    def drain(self) -> list[Exchange]:
        """All that is still open, in the order in which it was asked."""
        rest = sorted((e for queue in self.open.values() for e in queue), key=lambda exchange: exchange.start)
        self.open.clear()
        return rest


def member_text(message: Message, name: str) -> str | None:
    """The exact text of a member of `params`, or None without it."""
    member = message.params.get(name)
    return None if member is None else message.text_of(member)


def _answer_attributes(exchange: Exchange, message: Message) -> tuple[list[str], str | None, str]:
    """Encoded attributes of an answer, the message of an error status (None without one), and the outcome."""
    error, result = message.members.get("error"), message.members.get("result")
    if error is not None and (error.value is not None or result is None):
        attributes = payload(v.RESULT, "result", message.text_of(error))
        code = error.value.get("code") if isinstance(error.value, dict) else None
        said = error.value.get("message") if isinstance(error.value, dict) else None
        more, failure = error_attributes(code, said)
        return attributes + more, failure, "protocol_error"
    if result is None:
        return [], None, "ok"
    is_tool = exchange.method == "tools/call"
    attributes = payload(v.TOOL_RESULT if is_tool else v.RESULT, "result", message.text_of(result))
    if is_tool and isinstance(result.value, dict) and result.value.get("isError") is True:
        attributes.append(encode_attribute(v.ERROR_TYPE, "tool_error"))
        return attributes, "the tool's result is an error", "tool_error"
    return attributes, None, "ok"


def error_attributes(code: JSON, said: JSON) -> tuple[list[str], str | None]:
    """Encoded attributes of an error's code, and the message of the error status; None where it makes none."""
    number = code if isinstance(code, int) and not isinstance(code, bool) else None
    attributes = [] if number is None else [encode_attribute(v.STATUS_CODE, str(number))]
    if number in NOT_OUR_ERRORS:
        return attributes, None
    attributes.append(encode_attribute(v.ERROR_TYPE, "_OTHER" if number is None else str(number)))
    return attributes, said if isinstance(said, str) else ""


def requested(message: Message) -> IdKey | None:
    """The id of the request that a cancellation names, or None."""
    member = message.params.get("requestId")
    return None if member is None else id_key(member.value, message.text_of(member))


def negotiated(exchange: Exchange, message: Message) -> str:
    """The protocol version that an answer settles: of initialize its own, in the new era the request's; else ""."""
    result = message.members.get("result")
    if result is None or not isinstance(result.value, dict):
        return ""
    if exchange.method == "initialize":
        version: JSON = result.value.get("protocolVersion")
        return version if isinstance(version, str) else ""
    return exchange.version


class Owed(NamedTuple):
    """An exchange that an answer ended, of which the line is made once the answer has gone on.

    `seq` is the answer's; `ours` where the requester got an answer of the proxy's own.
    """

    exchange: Exchange
    message: Message
    now: Stamp
    seq: int
    version: str
    ours: bool

    def line(self, recorder: Recorder) -> str:
        """The line."""
        more, failure, outcome = _answer_attributes(self.exchange, self.message)
        return ended(
            recorder, self.exchange, self.now, outcome, more,
            version=self.version, failure=failure, ours=self.ours, seq=self.seq,
        )  # fmt: skip


def ended(
    recorder: Recorder,
    exchange: Exchange,
    now: Stamp,
    outcome: str,
    more: list[str],
    *,
    version: str,
    failure: str | None = None,
    ours: bool = False,
    seq: int | None = None,
) -> str:
    """The line of an exchange that is over, with `outcome` and the encoded attributes `more` of its answer.

    `seq` is the answer's place in the connection's order; None for the next one.
    """
    attributes = exchange.attributes()
    attributes.append(encode_attribute(v.OUTCOME, outcome))
    if outcome not in {"unanswered", "cancelled"}:
        attributes.append(_ANSWERED % (recorder.next_seq() if seq is None else seq, now.mono))
    if exchange.version or version:
        attributes.append(encode_attribute(v.PROTOCOL_VERSION, exchange.version or version))
    if exchange.reused:
        attributes.append(encode_attribute(v.ID_REUSED, True))
    if exchange.interim:
        attributes.append(encode_attribute(v.INTERIM, True))
    if exchange.cancelled:
        attributes.append(encode_attribute(v.CANCELLED, True))
    if ours:
        attributes.append(encode_attribute(v.REFUSED_BY_US, True))
    if exchange.leg is not None:
        attributes.append(encode_attribute(v.ROUND_OF, exchange.leg.root))
        attributes.append(encode_attribute(v.ROUND, exchange.leg.number))
    attributes += more
    return recorder.line(
        exchange.place,
        exchange.name,
        SERVER,
        (exchange.start.wall, max(now.wall, exchange.start.wall)),
        attributes,
        failure,
        None if exchange.leg is None else exchange.leg.before,
    )
