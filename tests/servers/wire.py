"""Talks to a fixture server in process: by the SDK's client, or frame by frame with ids of the test's choosing."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import anyio
from mcp import Client
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolResult,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    TextContent,
)
from mcp.types import Tool as ToolDefinition

from servers.catalogue import FIXTURES
from servers.database import journal_path
from servers.places import init_place, open_place
from servers.seed import Seed
from servers.serving import build_server

Arguments = Mapping[str, object]
Answer = JSONRPCResponse | JSONRPCError


def made(folder: Path, fixture: str, seed: Seed | None = None) -> Path:
    path = folder / f"{fixture}.db"
    init_place(path, FIXTURES[fixture], seed)
    return path


def call(path: Path, tool: str, arguments: Arguments, mode: str = "legacy") -> CallToolResult:
    async def run() -> CallToolResult:
        fixture = FIXTURES[path.stem]
        with open_place(path, fixture, "wire-1") as place:
            async with Client(build_server(place), mode=mode) as client:
                return await client.call_tool(tool, dict(arguments))

    return anyio.run(run)


def definitions(path: Path, mode: str = "legacy") -> list[ToolDefinition]:
    async def run() -> list[ToolDefinition]:
        fixture = FIXTURES[path.stem]
        with open_place(path, fixture, None) as place:
            async with Client(build_server(place), mode=mode) as client:
                return (await client.list_tools()).tools

    return anyio.run(run)


def exchange(path: Path, connection_id: str | None, calls: Sequence[tuple[int | str, str, Arguments]]) -> list[Answer]:
    """Send all calls at once, then read as many answers; they come in any order."""

    async def run() -> list[Answer]:
        fixture = FIXTURES[path.stem]
        with open_place(path, fixture, connection_id) as place:
            server = build_server(place)
            async with (
                create_client_server_memory_streams() as ((answers, requests), (read, write)),
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(server.run, read, write, server.create_initialization_options())
                hello = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"},
                }
                await requests.send(
                    SessionMessage(JSONRPCRequest(jsonrpc="2.0", id="hello", method="initialize", params=hello))
                )
                await answers.receive()
                initialized = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
                await requests.send(SessionMessage(initialized))

                async def send() -> None:
                    for id_, tool, arguments in calls:
                        params = {"name": tool, "arguments": dict(arguments)}
                        await requests.send(
                            SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=id_, method="tools/call", params=params))
                        )

                tasks.start_soon(send)
                received: list[Answer] = []
                while len(received) < len(calls):
                    item = await answers.receive()
                    assert isinstance(item, SessionMessage)
                    assert isinstance(item.message, JSONRPCResponse | JSONRPCError)
                    received.append(item.message)
                tasks.cancel_scope.cancel()
        return received

    return anyio.run(run)


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def content(result: CallToolResult) -> object:
    """The structured content of a result that is no error, whose text says the same."""
    assert not result.is_error, text(result)
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content


def refusal(result: CallToolResult) -> str:
    """The sentence of an `isError` result, which has no structured content."""
    assert result.is_error
    assert result.structured_content is None
    assert "\n" not in text(result)
    return text(result)


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def changes(path: Path) -> list[tuple[object, ...]]:
    """The journal in order, its JSON read."""
    found = rows(
        journal_path(path),
        "SELECT connection, request_id, table_name, row_id, op, before, after FROM changes ORDER BY rowid",
    )
    return [(*row[:5], *(None if cell is None else json.loads(str(cell)) for cell in row[5:])) for row in found]
