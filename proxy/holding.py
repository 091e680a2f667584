"""Calls of one connection that wait for an approval: held, then let through or refused, each on the record first.

Pure: refuses to know who approves and how long it takes. A held call leaves the order; what came behind it goes on.
"""

import json

from proxy import vocabulary as v
from proxy.connection import Connection, Step
from proxy.exchange import CLIENT_TO_SERVER
from proxy.held import SECOND, Answer, Grant, HeldCall, Refused, call_digest, refusal_of
from proxy.ids import IdKey
from proxy.judging import Judgement, judge_request, meta_text
from proxy.policy import Decision
from proxy.record import Stamp, payload
from proxy.refusals import RECORDER_FAILED
from proxy.refusing import refusal
from proxy.spans import INTERNAL, JSON
from proxy.tracecontext import spliced

ABANDONED = "the client went away while it waited for an approval"
CANCELLED = "the client cancelled it while it waited for an approval"


_FAILED = Decision("deny", "recorder failed", "the record cannot be written, so no call is let through", True)


def can_wait(wire: Connection, one: Judgement) -> bool:
    """Whether a refused message may wait for an approval instead: somebody holds it, and an answer can find it."""
    decision = one.decision
    if not wire.holds or wire.failed or decision is None or decision.hold is None:
        return False
    return one.message.id_key is not None and one.message.id_text is not None


def hold(wire: Connection, one: Judgement, raw: bytes, now: Stamp) -> Step:
    """Have a call wait. Its record is on disk before anybody is asked."""
    decision = one.decision
    if decision is None or decision.hold is None:
        return Step([])
    recorder = wire.recorder
    place = recorder.place(meta_text(one.message, "traceparent"))
    seq = recorder.next_seq()
    sha256 = call_digest(one.canonical, one.message.given.get("arguments"))
    told = _told(wire, one, sha256)
    held = HeldCall(recorder.new_id(16), one, decision.hold, raw, place, seq, now, sha256, told)
    wire.held[held.id] = held
    attributes = recorder.fact("held", now, CLIENT_TO_SERVER, {
        v.METHOD: one.message.method or "",
        v.TOOL_CANONICAL: one.canonical,
        v.DECISION_RULE: decision.rule,
        v.HELD_ID: held.id,
        v.HELD_SHA256: told,
    })  # fmt: skip
    attributes += payload(v.REQUEST, "request", one.message.source)
    name = f"held {one.message.method}"
    line = recorder.line(wire.child(place), name, INTERNAL, (now.wall, now.wall), attributes)
    return Step([line], held=(held,))


def answer(wire: Connection, held: HeldCall, said: Answer, now: Stamp) -> Step:
    """What an answer leads to: the call goes on, or is refused. Nothing where it waits no longer: the answer is void.

    The call is judged again, by the policy that stands now.
    """
    if wire.held.pop(held.id, None) is None:
        return Step([])
    one = judge_request(held.one.message, wire.policy, wire.server, wire.trust)
    why = refusal_of(held, said, now)
    if wire.failed:
        return _refuse(wire, held, one._replace(decision=_FAILED, code=RECORDER_FAILED), said, now)
    decision = one.decision
    if one.refused and decision is not None and decision.hold is None:
        return _refuse(wire, held, one, said, now)
    if why is not None or not isinstance(said, Grant):
        rule = held.one.decision.rule if held.one.decision is not None else "approve"
        form = held.one.decision.form if held.one.decision is not None else "tool_error"
        refusal = Decision("deny", rule, f"it has to be approved, and {why}", True, form)
        return _refuse(wire, held, one._replace(decision=refusal), said, now)
    return _release(wire, held, one, said, now)


def cancel(wire: Connection, key: IdKey | None, now: Stamp) -> list[str]:
    """The client gave up on a request: if it waits, it is never sent. The lines of that."""
    records: list[str] = []
    for held in [held for held in wire.held.values() if held.one.message.id_key == key]:
        records += answer(wire, held, Refused(CANCELLED, cancelled=True), now).records
        wire.freed.append(held)
    return records


def abandon(wire: Connection, now: Stamp) -> Step:
    """The client is gone: nothing that waits is ever sent."""
    held = list(wire.held.values())
    steps = [answer(wire, one, Refused(ABANDONED), now) for one in held]
    wire.freed += held
    return Step([line for step in steps for line in step.records], back=b"".join([step.back for step in steps]))


def _refuse(wire: Connection, held: HeldCall, one: Judgement, said: Answer, now: Stamp) -> Step:
    cancelled = isinstance(said, Refused) and said.cancelled
    begun = (held.place, held.seq, held.since)
    records, reply = refusal(wire, one, now, CLIENT_TO_SERVER, begun, cancelled=cancelled)
    if reply is None or cancelled:
        return Step(records)
    return Step(records, back=reply.encode("utf-8", "surrogateescape") + b"\n")


def _release(wire: Connection, held: HeldCall, one: Judgement, grant: Grant, now: Stamp) -> Step:
    rule = one.decision.rule if one.decision is not None else "approve"
    one = one._replace(decision=Decision("allow", rule, f"approved by {grant.source}: {grant.id}", True))
    exchange = wire.exchange(one, held.place, held.seq, held.since, CLIENT_TO_SERVER)
    if exchange is None:
        return Step([])
    if exchange.call is not None:
        exchange.leg = wire.rounds.next(one.message, exchange.call)
    wire.from_client.add(exchange)
    used = wire.recorder.next_seq()
    records = [
        _approval(wire, held, grant, used, now),
        wire.decision(one, held.place, wire.recorder.next_seq(), now, CLIENT_TO_SERVER, None),
    ]
    forward = spliced(held.raw, [(one.message, held.place)]) if wire.splice else held.raw
    return Step(records, forward, b"", True, (exchange,))


def _approval(wire: Connection, held: HeldCall, grant: Grant, used: int, now: Stamp) -> str:
    """The line of the approval that is used up by a call."""
    fields: dict[str, JSON] = {
        "id": grant.id,
        "tool": grant.tool,
        "arguments_sha256": held.told,
        "source": grant.source,
        "granted_at": _moment(grant.granted_at),
        "expires_at": _moment(grant.expires_at),
        "used_seq": used,
        "revoked_at": _moment(grant.revoked_at),
        "call": held.place.span_id,
    }
    attributes = wire.recorder.fact_at("event", used, now, CLIENT_TO_SERVER, {
        v.EVENT_TYPE: "approval",
        v.EVENT_FIELDS: json.dumps(fields, separators=(",", ":")),
    })  # fmt: skip
    return wire.recorder.line(wire.child(held.place), "approval", INTERNAL, (now.wall, now.wall), attributes)


def _told(wire: Connection, one: Judgement, sha256: str) -> str:
    """The digest of a call as the record tells it."""
    redactor, text = wire.recorder.redactor, one.message.given_text("arguments")
    if redactor is None or text is None or not redactor.finds(text):
        return sha256
    try:
        return call_digest(one.canonical, json.loads(redactor.text(text)[0]))
    except ValueError:
        return ""


def _moment(nanoseconds: int | None) -> str | None:
    """Unix nanoseconds as RFC 3339 in UTC."""
    if nanoseconds is None:
        return None
    from datetime import UTC, datetime  # noqa: PLC0415  (few connections ever need it)

    second, rest = divmod(nanoseconds, SECOND)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
