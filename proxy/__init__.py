"""The wire: JSON-RPC frames, MCP methods, policy and spans. It does not know that scenarios exist."""

WIRETRAP_ROOM = "proxy"
