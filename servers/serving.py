"""Serves a fixture's tools with the official MCP SDK. Knows MCP, and no fixture by name."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ToolDefinition

from servers.database import open_database, transaction
from servers.fixture import Fixture, Tool, ToolError
from servers.journal import Journal

VERSION = "1.0.0"


def build_server(fixture: Fixture, connection: sqlite3.Connection, connection_id: str | None) -> Server:
    """The fixture's server over a connection of `servers.database.open_database`.

    `connection_id` is the wire connection's id, for the journal. Each call is one transaction that runs without giving
    way to another, so calls may be open at once. One server to a connection; the caller closes the connection.
    """
    journal = Journal(connection, connection_id)
    tools = {tool.name: tool for tool in fixture.tools}
    definitions = [_definition(tool) for tool in fixture.tools]

    async def list_tools(_: ServerRequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=definitions)

    async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        try:
            arguments = tool.check(params.arguments or {})
            with journal.call(context.request_id), transaction(connection, writes=tool.effect != "read"):
                content = tool.run(connection, arguments)
        except ToolError as error:
            return _failed(str(error))
        except sqlite3.Error as error:
            return _failed(f"The database refused the call: {error}")
        text = json.dumps(content, ensure_ascii=False)
        return CallToolResult(content=[TextContent(text=text)], structured_content=content)

    return Server(fixture.name, version=VERSION, title=fixture.title, on_list_tools=list_tools, on_call_tool=call_tool)


def serve(fixture: Fixture, path: Path, connection_id: str | None) -> None:
    """Serve the database at `path` over stdin and stdout until stdin ends; raises DatabaseError before that."""
    with closing(open_database(path, fixture)) as connection:
        anyio.run(_serve, build_server(fixture, connection, connection_id))


async def _serve(server: Server) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=dict(tool.output),
        annotations=ToolAnnotations(
            read_only_hint=tool.effect == "read",
            destructive_hint=tool.effect in ("change", "remove"),
            idempotent_hint=tool.effect in ("read", "change"),
            open_world_hint=False,
        ),
    )


def _failed(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)
