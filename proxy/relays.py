"""Opens the connections of one proxy's record, each under the policy that stands at that time.

Refuses to know how clients and servers are reached.
"""

from proxy.ledger import random_hex
from proxy.listed import Listed
from proxy.offered import denied_by
from proxy.options import Start
from proxy.policy import Policy
from proxy.relay import Relay
from proxy.saying import say
from proxy.spanfile import SpanFile


class Relays:
    """`start` has the policy that stands now; `version` is ours."""

    def __init__(self, start: Start, version: str) -> None:
        self.start = start
        self._faults = start.fault_plan()
        self._version = version
        self.listed = Listed(start.identity.server_id, start.policy, lambda text: say(text, self.start.redactor))
        """What the lists of tools said so far."""

    def open(self) -> Relay:
        """A new connection of the record. Raises SpanFileError."""
        start = self.start
        identity = start.identity._replace(connection=random_hex(16))
        spans = SpanFile.create(start.folder, identity.server_id)
        if start.exporter is not None:
            spans.tap = start.exporter.offer
        relay = Relay(identity, start.policy, self._version, spans, start.redactor,
                      splice=start.splice, faults=self._faults)  # fmt: skip
        relay.session.recorder.offered = self.listed
        # Whoever serves HTTP has a request wait by itself.
        relay.session.connection.holds = True
        return relay

    def reload(self, path: str | None) -> Policy | None:
        """The policy of this file, which stands from here on. Raises PolicyError, and then the old one does."""
        self.start = self.start.with_policy(path)
        self.listed.adopt(denied_by(self.start.policy))
        return self.start.policy
