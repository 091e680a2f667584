"""Fixture MCP servers, each over its own SQLite database. They import neither `proxy` nor `harness`."""
