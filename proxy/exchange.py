"""A request and its answer.

Refuses to know policy and bytes; it makes of an exchange the attributes of its span.
"""

from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple

from proxy import vocabulary as v
from proxy.faults import Fault
from proxy.frames import Message
from proxy.ids import IdKey, id_key
from proxy.record import Place, Recorder, Stamp, payload
from proxy.rounds import CallKey, Leg
from proxy.spans import JSON, SERVER, encode_attribute, number_template, template

CLIENT_TO_SERVER, SERVER_TO_CLIENT = "client_to_server", "server_to_client"

REQUEST = f"{template(v.SPAN_KIND, v.METHOD, v.REQUEST_ID, v.ID_TEXT, v.DIRECTION)},{number_template(v.SEQ, v.MONO)}"
ANSWERED = number_template(v.RESULT_SEQ, v.RESULT_MONO)
OUTCOME, VERSION = template(v.OUTCOME), template(v.PROTOCOL_VERSION)
_SHORT = 256
"""Characters of a name that is remembered with what is said of it."""

NOT_OUR_ERRORS = frozenset({-32700, -32600, -32601, -32602, -32002})
"""Codes that do not make a SERVER span an error: the caller's fault (OpenTelemetry MCP conventions 0.1.0)."""


class Asked(NamedTuple):
    """What was asked: its place in the connection's order, which way it went, and of what it speaks, "" of nothing.

    `text` is that of the arguments or else of `params`, None without it. `cut`: the message is not whole, and has no
    more than its id, method and target.
    """

    seq: int
    direction: str
    canonical: str
    target: str
    text: str | None
    cut: bool


@dataclass(slots=True, eq=False)
class Exchange:
    """An open request. `version` is the protocol version that the request itself carries.

    `call` is what it calls, where an answer may ask for another round; `leg` is set in a round that is not the first.
    `status` is that of the HTTP response that answers it. `planned` is the fault that its answer is to meet, `spoilt`
    the encoded attributes of a fault that was met. No more is kept than its span will say: many may be open.
    """

    place: Place
    method: str
    start: Stamp
    id_text: str
    key: IdKey
    asked: Asked
    version: str = ""
    call: CallKey | None = None
    leg: Leg | None = None
    reused: bool = False
    cancelled: bool = False
    interim: bool = False
    status: int | None = None
    planned: Fault | None = None
    spoilt: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    """What is the same in the spans of all plain calls of its tool; empty where it is not such a call."""

    @property
    def name(self) -> str:
        """The name of its span."""
        target = self.asked.target if self.method in ("tools/call", "prompts/get") else ""
        return f"{self.method} {target}" if target else self.method

    def attributes(self) -> list[str]:
        """The encoded attributes of the request."""
        asked, method, key = self.asked, self.method, self.key[1]
        is_call = method == "tools/call"
        id_text = quote(self.id_text)
        plain_id = quote(key) if isinstance(key, str) else id_text
        about = about_request if len(asked.canonical) <= _SHORT else about_request.__wrapped__
        attributes = [
            REQUEST
            % ('"request"', quote(method), plain_id, id_text, quote(asked.direction), asked.seq, self.start.mono),
            *about(method, asked.canonical, asked.target),
        ]
        if asked.text is not None:
            attributes += (
                payload(v.TOOL_ARGUMENTS, "arguments", asked.text)
                if is_call
                else payload(v.PARAMS, "params", asked.text)
            )
        if asked.cut:
            attributes.append(encode_attribute(v.payload_truncated("arguments" if is_call else "params"), True))
        if self.status is not None:
            attributes.append(encode_attribute(v.HTTP_STATUS, self.status))
        attributes += self.spoilt
        return attributes


_TARGETS = {"tools/call": v.TOOL_NAME, "prompts/get": v.PROMPT_NAME, "resources/read": v.RESOURCE_URI}


@lru_cache(256)
def about_request(method: str, canonical: str, target: str) -> tuple[str, ...]:
    """The encoded attributes of what a request speaks of."""
    found = [encode_attribute(v.TOOL_CANONICAL, canonical)] if canonical else []
    if method == "tools/call":
        found.append(encode_attribute(v.OPERATION, "execute_tool"))
    if target and method in _TARGETS:
        found.append(encode_attribute(_TARGETS[method], target))
    return tuple(found)


def answer_attributes(exchange: Exchange, message: Message) -> tuple[list[str], str | None, str]:
    """Encoded attributes of an answer, the message of an error status (None without one), and the outcome."""
    text = message.field_text("result")
    error = message.fields.get("error")
    if error is not None or text is None:
        attributes = payload(v.RESULT, "result", message.field_text("error") or "")
        code = error.get("code") if isinstance(error, dict) else None
        said = error.get("message") if isinstance(error, dict) else None
        more, failure = error_attributes(code, said)
        return attributes + more, failure, "protocol_error"
    is_tool, result = exchange.method == "tools/call", message.fields.get("result")
    attributes = payload(v.TOOL_RESULT if is_tool else v.RESULT, "result", text)
    if is_tool and isinstance(result, dict) and result.get("isError") is True:
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
    text = message.given_text("requestId")
    return None if text is None else id_key(message.given["requestId"], text)


def negotiated(exchange: Exchange, message: Message) -> str:
    """The protocol version that an answer settles: of initialize its own, in the new era the request's; else ""."""
    result = message.fields.get("result")
    if not isinstance(result, dict):
        return ""
    if exchange.method == "initialize":
        version = result.get("protocolVersion")
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
        more, failure, outcome = answer_attributes(self.exchange, self.message)
        if self.message.id_key != self.exchange.key and self.message.id_text is not None:
            more.append(encode_attribute(v.ANSWER_ID, self.message.id_text))
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
    attributes.append(OUTCOME % f'"{outcome}"')
    if outcome not in {"unanswered", "cancelled"}:
        attributes.append(ANSWERED % (recorder.next_seq() if seq is None else seq, now.mono))
    version = exchange.version or version
    if version:
        attributes.append(VERSION % quote(version))
    if exchange.reused or exchange.interim or exchange.cancelled or ours:
        flags = {
            v.ID_REUSED: exchange.reused,
            v.INTERIM: exchange.interim,
            v.CANCELLED: exchange.cancelled,
            v.REFUSED_BY_US: ours,
        }
        attributes += [encode_attribute(key, True) for key, flag in flags.items() if flag]
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
