"""A message that goes no further: what is recorded of it, and what its sender gets for an answer.

Pure. Refuses to know why it is refused.
"""

from proxy import vocabulary as v
from proxy.connection import Connection
from proxy.exchange import ended
from proxy.judging import Judgement, meta_text
from proxy.record import Place, Stamp
from proxy.refusals import NOT_READABLE, error, tool_error
from proxy.spans import encode_attribute

_SHORT = 80
"""Characters of a method that are repeated to the model; a longer one is no method of MCP."""


def refusal(
    wire: Connection,
    one: Judgement,
    now: Stamp,
    direction: str,
    begun: tuple[Place, int, Stamp] | None = None,
    *,
    cancelled: bool = False,
) -> tuple[list[str], str | None]:
    """The lines of a refused message, and the answer where it has an id that one can carry.

    `begun` is the place, the seq and the moment of one that waited; `cancelled`: its client gave it up.
    """
    message, decision = one.message, one.decision
    method = message.method
    if decision is None or method is None:
        return [], None
    if begun is None:
        begun = (wire.recorder.place(meta_text(message, "traceparent")), wire.recorder.next_seq(), now)
    place, seq, since = begun
    odd = decision.reason if one.code == NOT_READABLE else None
    id_text = message.id_text
    exchange = wire.exchange(one, place, seq, since, direction)
    decided = seq if since is now else wire.recorder.next_seq()
    records = [wire.decision(one, place, decided, now, direction, odd, alone=exchange is None)]
    if exchange is None or id_text is None:
        return records, None
    exchange.cancelled = cancelled
    said = f"Wiretrap refused this {method if len(method) < _SHORT else 'request'}: {decision.reason}"
    if method == "tools/call" and decision.form != "error":
        modern = (exchange.version or wire.version) >= "2026"
        reply = tool_error(id_text, one.code, said, decision.rule, reason=decision.reason, modern=modern)
    else:
        reply = error(id_text, one.code, said, decision.rule, reason=decision.reason)
    more = [encode_attribute(v.ERROR_TYPE, str(one.code))]
    records.append(
        ended(wire.recorder, exchange, now, "denied", more, version=wire.version, failure=decision.reason, ours=True)
    )
    return records, reply


def unlisted(id_text: str, problem: Exception) -> str:
    """The error that the client gets for an answer that could not be edited."""
    said = f"Wiretrap could not take hidden tools out of this answer: {problem}"
    return error(id_text, NOT_READABLE, said)


def as_lines(replies: list[str]) -> bytes:
    """Replies, each on a line."""
    return "".join(f"{reply}\n" for reply in replies).encode("utf-8", "surrogateescape")
