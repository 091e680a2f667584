"""The wire: JSON-RPC frames, MCP methods, policy and spans. It does not know that scenarios exist."""

__version__ = "0.1.0"
WIRETRAP_ROOM = "proxy"
"""The mark by which `harness` knows that this `proxy` is Wiretrap's own and not another distribution's."""
