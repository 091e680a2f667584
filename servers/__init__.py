"""Fixture MCP servers, each over its own SQLite database. They import neither `proxy` nor `harness`."""

WIRETRAP_ROOM = "servers"
"""The mark by which `harness` knows that these `servers` are Wiretrap's own and not another distribution's."""
