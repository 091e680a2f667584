"""Opens the connections of one proxy's record, each under the policy that stands at that time.

Refuses to know how clients and servers are reached.
"""

from proxy.ledger import random_hex
from proxy.options import Start
from proxy.policy import Policy
from proxy.relay import Relay
from proxy.spanfile import SpanFile


class Relays:
    """`start` has the policy that stands now; `version` is ours."""

    def __init__(self, start: Start, version: str) -> None:
        self.start = start
        self._faults = start.fault_plan()
        self._version = version

    def open(self) -> Relay:
        """A new connection of the record. Raises SpanFileError."""
        start = self.start
        identity = start.identity._replace(connection=random_hex(16))
        spans = SpanFile.create(start.folder, identity.server_id)
        if start.exporter is not None:
            spans.tap = start.exporter.offer
        relay = Relay(identity, start.policy, self._version, spans, start.redactor,
                      splice=start.splice, faults=self._faults)  # fmt: skip
        # Whoever serves HTTP has a request wait by itself.
        relay.session.connection.holds = True
        return relay

    def reload(self, path: str | None) -> Policy | None:
        """The policy of this file, which stands from here on. Raises PolicyError, and then the old one does."""
        self.start = self.start.with_policy(path)
        return self.start.policy
