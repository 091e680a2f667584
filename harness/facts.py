"""A span of ours, read for what it states: an exchange, a ruling of the policy, or another fact of a connection.

Refuses to know traces. Payloads stay text here; who wants their values reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, get_args

from harness.beside import beside, is_telling
from harness.loosefacts import PARAMS_CUT, PAYLOADS, says_something
from harness.trace import Outcome
from proxy import vocabulary as v
from proxy.spans import Attribute, Span

OUTCOMES: Mapping[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}


class ConvertError(ValueError):
    """Spans that make no trace: which span, which attribute, and what is wrong."""


class Moment(NamedTuple):
    """A place in the order of all processes of a machine: monotonic ns, connection, place in the connection."""

    mono: int
    connection: str
    seq: int


class Origin(NamedTuple):
    """Whose connection a fact belongs to. None where the span does not say."""

    connection: str
    server: str | None
    trust: str | None
    transport: str | None
    agent: str | None


@dataclass(slots=True)
class Exchange:
    """A request of either side and its answer. `end` is None when none came; times are Unix nanoseconds."""

    origin: Origin
    at: Moment
    end: Moment | None
    span_id: str
    start_ns: int
    end_ns: int
    method: str
    from_client: bool
    outcome: Outcome
    refused_by_us: bool
    name: str | None
    tool: str | None
    uri: str | None
    prompt: str | None
    version: str | None
    id_text: str | None
    arguments: str | None
    arguments_cut: bool
    params: str | None
    result: str | None
    result_cut: bool
    interim: bool = False
    round_of: str | None = None
    fault: str | None = None
    server_outcome: Outcome | None = None
    sent: str | None = None
    """JSON text of what the client sent and no other field holds: a request's params, its answer to a server."""
    params_cut: bool = False
    end_seq: int = 0
    """Set while a trace is numbered: the place of the answer in it."""
    ruling: "Ruling | None" = None
    """Set while a trace is put in order: the first decision on the request."""


@dataclass(slots=True)
class Ruling:
    """A decision. `request` is the whole frame's text, dropped where nobody will ask; `parent` the request's key."""

    origin: Origin
    at: Moment
    span_id: str
    parent: bytes
    start_ns: int
    method: str | None
    from_client: bool
    name: str | None
    uri: str | None
    decision: str
    rule: str | None
    reason: str | None
    enforced: bool
    malformed: str | None
    id_text: str | None
    request: str | None
    request_cut: bool
    beside: str | None = None
    """JSON text of what a tools/call sent beside its name and arguments, such as `_meta`."""

    @property
    def refuses(self) -> bool:
        """Whether the frame went no further."""
        return self.enforced and self.decision == "deny"

    @property
    def plain(self) -> bool:
        """Whether the frame has one reading and was let through: then its exchange says all of it."""
        return self.decision == "allow" and self.malformed is None


@dataclass(slots=True)
class Other:
    """Any other span of ours, by its `kind`: the attributes stay as they are."""

    origin: Origin
    at: Moment
    span_id: str
    kind: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Attribute]


Fact: TypeAlias = Exchange | Ruling | Other

KEPT = frozenset({"connection_opened", "connection_closed", "unread", "agent_run", "event"})
COUNTED = frozenset({"held", "notification", "malformed", "unmatched"})
"""Kinds that show that their connection lived; what says nothing gives nothing more to a trace."""
_NEEDS_PARAMS = frozenset({"initialize", "server/discover"})


def span_key(trace_id: str, span_id: str) -> bytes:
    """The identity of a span, 24 bytes."""
    return bytes.fromhex(trace_id + span_id)


class FactReader:
    """Reads facts of spans, and keeps one Origin a connection."""

    def __init__(self) -> None:
        self._origins: dict[tuple[Attribute | None, ...], Origin] = {}
        self._words: dict[Attribute, str] = {}

    def fact(self, span: Span) -> Fact | None:
        """The fact that a span of ours states; None for a kind that is not known. Raises ConvertError."""
        get = span.attributes.get
        said = (get(v.CONNECTION), get(v.SERVER_ID), get(v.SERVER_TRUST), get(v.TRANSPORT), get(v.AGENT_ID))
        origin = self._origins.get(said)
        if origin is None:
            origin = self._origins[said] = _origin(span)
        at = Moment(_integer(span, v.MONO), origin.connection, _integer(span, v.SEQ, 0))
        kind = _text(span, v.SPAN_KIND)
        match kind:
            case "request":
                return self._exchange(span, origin, at)
            case "decision":
                return self._ruling(span, origin, at)
            case None:
                raise ConvertError(f"span {span.span_id} ({span.name}) is of scope wiretrap and has no {v.SPAN_KIND}")
            case _ if kind in KEPT:
                return Other(origin, at, span.span_id, kind, span.start_ns, span.end_ns, span.attributes)
            case _ if kind in COUNTED:
                return Other(origin, at, span.span_id, kind, span.start_ns, span.end_ns, _loose(span, kind))
            case _:
                return None

    def _exchange(self, span: Span, origin: Origin, at: Moment) -> Exchange:
        method = self._word(span, v.METHOD)
        if method is None:
            raise ConvertError(f"span {span.span_id} ({span.name}) is a request without {v.METHOD}")
        outcome = OUTCOMES.get(_text(span, v.OUTCOME) or "")
        if outcome is None:
            raise ConvertError(f"span {span.span_id} ({span.name}): {v.OUTCOME} is none of {', '.join(OUTCOMES)}")
        end = None
        if v.RESULT_MONO in span.attributes:
            end = Moment(_integer(span, v.RESULT_MONO), at.connection, _integer(span, v.RESULT_SEQ, at.seq))
        # A tool's result and the error that stood for it are never both there.
        result = _text(span, v.TOOL_RESULT) or _text(span, v.RESULT)
        from_client = _from_client(span)
        params = _text(span, v.PARAMS)
        # What the client sent; its calls and its openings are read where they are told.
        sent = result if not from_client else None if method in _NEEDS_PARAMS else params
        return Exchange(
            origin=origin,
            at=at,
            end=end,
            span_id=span.span_id,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            method=method,
            from_client=from_client,
            outcome=outcome,
            refused_by_us=span.attributes.get(v.REFUSED_BY_US) is True,
            name=self._word(span, v.TOOL_CANONICAL),
            tool=self._word(span, v.TOOL_NAME),
            uri=self._word(span, v.RESOURCE_URI),
            prompt=self._word(span, v.PROMPT_NAME),
            version=self._word(span, v.PROTOCOL_VERSION),
            id_text=_text(span, v.ID_TEXT),
            arguments=_text(span, v.TOOL_ARGUMENTS),
            arguments_cut=span.attributes.get(v.payload_truncated("arguments")) is True,
            params=params if method in _NEEDS_PARAMS or not from_client else None,
            result=result if from_client else None,
            result_cut=span.attributes.get(v.payload_truncated("result")) is True,
            interim=span.attributes.get(v.INTERIM) is True,
            round_of=_text(span, v.ROUND_OF),
            fault=self._word(span, v.FAULT),
            server_outcome=OUTCOMES.get(_text(span, v.FAULT_OUTCOME) or ""),
            sent=sent if is_telling(sent) else None,
            params_cut=span.attributes.get(PARAMS_CUT) is True,
        )

    def _ruling(self, span: Span, origin: Origin, at: Moment) -> Ruling:
        decision = self._word(span, v.DECISION)
        if decision is None:
            raise ConvertError(f"span {span.span_id} ({span.name}) is a decision without {v.DECISION}")
        request = _text(span, v.REQUEST)
        return Ruling(
            origin=origin,
            at=at,
            span_id=span.span_id,
            parent=span_key(span.trace_id, span.parent_id),
            start_ns=span.start_ns,
            method=self._word(span, v.METHOD),
            from_client=_from_client(span),
            name=self._word(span, v.TOOL_CANONICAL),
            uri=self._word(span, v.RESOURCE_URI),
            decision=decision,
            rule=self._word(span, v.DECISION_RULE),
            reason=self._word(span, v.DECISION_REASON),
            enforced=span.attributes.get(v.DECISION_ENFORCED) is True,
            malformed=self._word(span, v.MALFORMED),
            id_text=_text(span, v.ID_TEXT),
            request=request,
            beside=None if (rest := beside(request)) is None else self._shared(rest),
            request_cut=span.attributes.get(v.payload_truncated("request")) is True,
        )

    def _word(self, span: Span, key: str) -> str | None:
        """A text that many spans share, as one copy of it."""
        value = span.attributes.get(key)
        if value is None:
            return None
        known = self._words.get(value)
        if known is not None:
            return known
        text = _text(span, key)
        return text if text is None or len(text) > 200 else self._shared(text)

    def _shared(self, text: str) -> str:
        if len(self._words) > 10_000:
            self._words.clear()
        return self._words.setdefault(text, text)


def _origin(span: Span) -> Origin:
    return Origin(
        _text(span, v.CONNECTION) or "",
        _text(span, v.SERVER_ID),
        _text(span, v.SERVER_TRUST),
        _text(span, v.TRANSPORT),
        _text(span, v.AGENT_ID),
    )


def _loose(span: Span, kind: str) -> Mapping[str, Attribute]:
    """What a thing outside of an exchange says, under the names of a notification; nothing where it is not worth it."""
    if kind not in PAYLOADS:
        return {}
    key, label = PAYLOADS[kind]
    text, cut = _text(span, key), span.attributes.get(v.payload_truncated(label)) is True
    if not says_something(text, cut=cut, from_client=_from_client(span)):
        return {}
    told: dict[str, Attribute] = {v.DIRECTION: span.attributes.get(v.DIRECTION, ""), v.PARAMS: text or ""}
    if (method := _text(span, v.METHOD)) is not None:
        told[v.METHOD] = method
    return {**told, PARAMS_CUT: True} if cut else told


def _from_client(span: Span) -> bool:
    return span.attributes.get(v.DIRECTION) != "server_to_client"


def _text(span: Span, key: str) -> str | None:
    value = span.attributes.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ConvertError(f"span {span.span_id} ({span.name}): {key} is {value!r}, and text is expected")


def _integer(span: Span, key: str, default: int | None = None) -> int:
    value = span.attributes.get(key, default)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    said = "absent" if value is None else repr(value)
    raise ConvertError(f"span {span.span_id} ({span.name}): {key} is {said}, and an integer is expected")
