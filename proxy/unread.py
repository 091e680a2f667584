"""The record of a tunnel to a server of ours whose content cannot be read: that it was there, how much, and why.

Refuses to know sockets, and what is to become of the tunnel.
"""

from proxy import vocabulary as v
from proxy.ledger import now
from proxy.record import Place
from proxy.relay import Relay
from proxy.routes import Target
from proxy.spans import INTERNAL, Attribute

NAME = "not observable"


class Unread:
    """One such tunnel, which is a connection of the record."""

    def __init__(self, relay: Relay, target: Target, why: str, *, refused: bool) -> None:
        """`why` it is not read, in words; `refused`: nothing of it goes on. `failure` says if that is not written."""
        self.relay = relay
        recorder = relay.session.recorder
        hide = recorder.redactor
        host = target.authority if hide is None else hide.text(target.authority)[0]
        told: dict[str, Attribute] = {v.UNREAD_HOST: host, v.UNREAD_REASON: why}
        if refused:
            told[v.REFUSED_BY_US] = True
        recorder.also(told)
        moment = now()
        place = Place(recorder.trace_id, recorder.new_id(16), recorder.connection_span)
        attributes = recorder.fact("unread", moment, "", {})
        relay.ledger.write([recorder.line(place, NAME, INTERNAL, (moment.wall, moment.wall), attributes)])

    @property
    def failure(self) -> str:
        """What went wrong with the record, "" while it is whole."""
        return self.relay.failure

    def close(self, reason: str, sent: int, received: int, not_exported: int | None = None) -> None:
        """Record how it ended, and how many bytes the client and the server sent."""
        self.relay.session.recorder.also({v.UNREAD_SENT: sent, v.UNREAD_RECEIVED: received})
        self.relay.close(reason, not_exported)
