"""The quick way of a plain call through one connection: judged, and its two spans made, with little but the text new.

It gives what the careful way gives, or nothing, and then has changed nothing. Refuses to know files and pipes.
"""

from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple

from proxy import vocabulary as v
from proxy.connection import DECISION, Connection, Step
from proxy.exchange import ANSWERED, CLIENT_TO_SERVER, OUTCOME, REQUEST, VERSION, Asked, Exchange, about_request
from proxy.exchanges import OpenCall
from proxy.judging import VERSION_KEY, about_decision
from proxy.plain import plain_answer, plain_arguments, plain_call
from proxy.policy import NO_POLICY, Decision, Policy, canonical_name
from proxy.record import Place, Recorder, Stamp, payload_template
from proxy.sha import sha256_hex
from proxy.spans import INTERNAL, JSON, SERVER, template

_CALL = "tools/call"
_HOLE = "\0"
"""Stands for what differs from span to span; encoded text has no control character."""
_LONGEST, _MOST = 256, 256
"""Characters of a tool's name that is remembered, and how many are."""


class _Tool(NamedTuple):
    """A tool that is called: `decision` is None where it depends on the arguments, `about` is its encoded form.

    `decided` and `called` are what is the same in the lines of all decisions on it, and of all calls that are answered;
    `trace_id` and `parent_id` are those of all their spans.
    """

    name: str
    canonical: str
    decision: Decision | None
    about: str
    decided: tuple[str, ...]
    called: tuple[str, ...]
    trace_id: str
    parent_id: str

    def exchange(self, call: OpenCall) -> Exchange:
        """The exchange that a call begins."""
        _, span, mono, wall, id_text, key, seq, text, version = call
        place, asked = (
            Place(self.trace_id, span, self.parent_id),
            Asked(seq, CLIENT_TO_SERVER, self.canonical, self.name, text, False),
        )
        made = Exchange(place, _CALL, Stamp(mono, wall), id_text, key, asked, version)
        made.told = self.called
        if version:
            made.call = (_CALL, self.name, text)
        return made


def _filled(format_text: str, *values: str) -> str:
    """A template with these values, and with holes for those behind them."""
    text = format_text.replace("%d", "%s")
    return text % (*values, *[_HOLE] * (text.count("%s") - len(values)))


def _payload(key: str, label: str) -> str:
    before, digest, behind = payload_template(key, label).replace("%d", "%s").rpartition("%s")
    return _filled(f'{before}"{digest}"{behind}')


def _line(recorder: Recorder, name: str, kind: int, attributes: list[str]) -> tuple[str, ...]:
    """A line as the pieces between its holes: own id, parent's, start, end, and those of the attributes."""
    shape = recorder.shape(name, kind)
    ids = f'{shape.before}{_HOLE}","parentSpanId":"{_HOLE}'
    times = f'{shape.named}{_HOLE}","endTimeUnixNano":"{_HOLE}'
    return tuple(f"{ids}{times}{shape.common}{','.join(attributes)}{shape.behind}".split(_HOLE))


_about = lru_cache(_MOST)(about_decision)


@lru_cache(16)
def _version(version: str) -> str:
    return f"{VERSION % quote(version)}," if version else ""


def _settled(policy: Policy, canonical: str, trust: str) -> Decision | None:
    """The decision on a name where no arguments can change it; None where they can."""
    if any(rule.fits is not None and rule.names(canonical, trust) for rule in policy.rules):
        return None
    return policy.judge(canonical, trust, None)


class PlainWay:
    """What is remembered of the tools of one connection, as long as neither its policy nor its identity changes."""

    def __init__(self, wire: Connection) -> None:
        self.wire = wire
        self._tools: dict[str, _Tool | None] = {}
        self._policy: Policy | None = None
        self._common = ""

    def call(self, raw: bytes, now: Stamp) -> Step | None:
        """What a line of the client leads to; None where it has to go the careful way."""
        decided = self.decided(raw, *now)
        if decided is None:
            return None
        line, call = decided
        exchange = call[0].exchange(call)
        self.wire.from_client.add(exchange)
        return Step([line], raw, b"", True, (exchange,))

    def decided(self, raw: bytes, mono: int, wall: int) -> tuple[str, OpenCall] | None:
        """The decision's line on a line of the client that may go on, and the call that is open then.

        None where it has to go the careful way. As little as can be is made here, since the client waits.
        """
        wire = self.wire
        recorder = wire.recorder
        if wire.failed or wire.splice or wire.faults is not None or recorder.redactor is not None:
            return None
        asked = plain_call(raw)
        if asked is None:
            return None
        id_text, key, name, text, meta = asked
        # Its answers are in an order then; or an answer that is not looked at yet has set it free.
        if wire.from_client.is_open(key):
            return None
        version = ""
        if meta is not None:
            if "traceparent" in meta:
                return None
            said = meta.get(VERSION_KEY)
            version = said if isinstance(said, str) else ""
        if wire.policy is not self._policy or recorder.common is not self._common:
            self._forget()
        tool = self._tools[name] if name in self._tools else self._learn(name)
        if tool is None:
            return None
        about = tool.about
        if tool.decision is None:
            decision = self._judge(tool.canonical, plain_arguments(text))
            if decision is None:
                return None
            about = _about(decision, _CALL, tool.canonical)
        span, own = recorder.new_id(16), recorder.new_id(16)
        seq = recorder.next_seq()
        recorder.calls += 1
        source = raw[:-1]
        a, b, c, d, e, f, g, h, i, j, k, l = tool.decided  # noqa: E741  (the pieces have no names of their own)
        line = (
            f"{a}{own}{b}{span}{c}{wall}{d}{wall}{e}{seq}{f}{mono}{g}{about}{h}{quote(id_text)}{i}"
            f"{quote(source.decode())}{j}{len(source)}{k}{sha256_hex(source)}{l}"
        )
        return line, (tool, span, mono, wall, id_text, key, seq, text, version)

    def answer(self, raw: bytes, then: Stamp, seq: int) -> str | None:
        """The line of the exchange that a line of the server ends; None where it has to go the careful way."""
        wire = self.wire
        if wire.recorder.redactor is not None:
            return None
        answer = plain_answer(raw)
        if answer is None:
            return None
        key, text, result = answer
        if (
            not isinstance(result, dict)
            or result.get("isError") is True
            or result.get("resultType") == "input_required"
        ):
            return None
        call = wire.from_client.calls.get(key)
        if call is not None:
            tool, span, began, start, id_text, _, place, given, version = call
            if then < (began, start):  # nobody had asked when it came
                return None
            del wire.from_client.calls[key]
            parent, pieces = tool.parent_id, tool.called
        else:
            exchange = wire.from_client.first(key)
            if (
                exchange is None
                or exchange.key != key
                or not exchange.told
                or then < exchange.start
                or exchange.reused
                or exchange.cancelled
                or exchange.status is not None
            ):
                return None
            wire.from_client.take(key)
            (_, span, parent), (began, start), id_text = exchange.place, exchange.start, exchange.id_text
            place, given, version, pieces = (
                exchange.asked.seq,
                exchange.asked.text or "",
                exchange.version,
                exchange.told,
            )
        if version and not wire.version:
            wire.version = version
        mono, wall = then
        digits = quote(id_text)
        plain = quote(key[1]) if isinstance(key[1], str) else digits
        asked, told = given.encode(), text.encode("utf-8", "surrogateescape")
        a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r = pieces  # noqa: E741  (as above)
        return (
            f"{a}{span}{b}{parent}{c}{start}{d}{max(wall, start)}{e}{plain}{f}{digits}{g}{place}{h}{began}{i}"
            f"{quote(given)}{j}{len(asked)}{k}{sha256_hex(asked)}{l}{seq}{m}{mono}{n}"
            f"{_version(version or wire.version)}{o}{quote(text)}{p}{len(told)}{q}{sha256_hex(told)}{r}"
        )

    def _forget(self) -> None:
        self._tools.clear()
        self._policy, self._common = self.wire.policy, self.wire.recorder.common

    def _judge(self, canonical: str, arguments: JSON) -> Decision | None:
        """The decision on a call that goes on; None where none does, or policy fails."""
        policy = self.wire.policy
        try:
            decision = NO_POLICY if policy is None else policy.judge(canonical, self.wire.trust, arguments)
        except Exception:  # the careful way refuses it
            return None
        return None if decision.verdict == "deny" and decision.enforced else decision

    def _learn(self, name: str) -> _Tool | None:
        """What is the same for all calls of a tool; None where they go the careful way."""
        if len(name) > _LONGEST or len(self._tools) >= _MOST:
            return None
        self._tools[name] = tool = self._tool(name)
        return tool

    def _tool(self, name: str) -> _Tool | None:
        wire, policy = self.wire, self.wire.policy
        recorder = wire.recorder
        try:
            canonical = canonical_name(wire.server, "tool", name)
            decision = NO_POLICY if policy is None else _settled(policy, canonical, wire.trust)
        except Exception:  # the careful way refuses it
            return None
        about = ""
        if decision is not None:
            if decision.verdict == "deny" and decision.enforced:
                return None
            about = about_decision(decision, _CALL, canonical)
        direction = quote(CLIENT_TO_SERVER)
        decided = [
            _filled(DECISION, '"decision"', direction),
            _HOLE,
            _filled(template(v.ID_TEXT)),
            _payload(v.REQUEST, "request"),
        ]
        # Of the request the two spellings of its id stand between its method and its direction.
        called = [
            REQUEST.replace("%d", "%s") % ('"request"', f'"{_CALL}"', _HOLE, _HOLE, direction, _HOLE, _HOLE),
            *about_request(_CALL, canonical, name),
            _payload(v.TOOL_ARGUMENTS, "arguments"),
            OUTCOME % '"ok"',
            _filled(ANSWERED),
            f"{_HOLE}{_payload(v.TOOL_RESULT, 'result')}",
        ]
        return _Tool(
            name,
            canonical,
            decision,
            about,
            _line(recorder, f"decision {_CALL}", INTERNAL, decided),
            _line(recorder, f"{_CALL} {name}", SERVER, called),
            recorder.trace_id,
            recorder.parent_id,
        )
