"""What one proxy learns from the lists of tools that pass it, over all connections of its record.

Refuses to know where lists come from, and what becomes of a request.
"""

from collections.abc import Callable

from proxy.frames import read_loose
from proxy.mcpheaders import ANNOTATION, Mirrors
from proxy.members import FrameError
from proxy.offered import Offered, denied_by
from proxy.policy import Policy


class Listed(Offered):
    """Which tools there are, against the deny rules that name one, and which of their arguments headers say again."""

    def __init__(self, server: str, policy: Policy | None, tell: Callable[[str], None]) -> None:
        """`tell` is told of rules that name a tool which is not there."""
        super().__init__(server, denied_by(policy), tell)
        self.mirrors = Mirrors()

    def take(self, source: str) -> None:
        """An answer to tools/list."""
        super().take(source)
        if self.mirrors or ANNOTATION in source or "\\u" in source:
            try:
                self.mirrors.learn(read_loose(source.encode("utf-8", "surrogateescape")).messages[0])
            except FrameError:
                return
