"""Serves a fixture's tools, and a folder's resources and prompt, with the official MCP SDK. Names no fixture."""

import json
import sqlite3
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

from servers.fixture import Signature, ToolError
from servers.folderfixture import FolderPlace
from servers.folderserving import FolderHandlers
from servers.places import AnyFixture, DatabasePlace, Place, open_place

VERSION = "1.0.0"


def build_server(place: Place) -> Server:
    """The server over an open place of `servers.places.open_place`, which the caller closes.

    Each call runs without giving way to another, so calls may be open at once.
    """
    fixture = place.fixture
    names = frozenset(tool.name for tool in fixture.tools)

    async def list_tools(_: ServerRequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_definition(signature) for signature in place.signatures()])

    async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name not in names:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        try:
            content = place.call(params.name, params.arguments or {}, context.request_id)
        except ToolError as error:
            return _failed(str(error))
        except sqlite3.Error as error:
            return _failed(f"The database refused the call: {error}")
        text = json.dumps(content, ensure_ascii=False)
        return CallToolResult(content=[TextContent(text=text)], structured_content=content)

    match place:
        case DatabasePlace():
            return Server(
                fixture.name, version=VERSION, title=fixture.title, on_list_tools=list_tools, on_call_tool=call_tool
            )
        case FolderPlace():
            files = FolderHandlers(place)
            return Server(
                fixture.name,
                version=VERSION,
                title=fixture.title,
                on_list_tools=list_tools,
                on_call_tool=call_tool,
                on_list_resources=files.list_resources,
                on_read_resource=files.read_resource,
                on_list_prompts=files.list_prompts,
                on_get_prompt=files.get_prompt,
            )


def serve(fixture: AnyFixture, path: Path, connection_id: str | None) -> None:
    """Serve what lies at `path` over stdin and stdout until stdin ends; raises PlaceError before that."""
    with open_place(path, fixture, connection_id) as place:
        anyio.run(_serve, build_server(place))


async def _serve(server: Server) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _definition(tool: Signature) -> ToolDefinition:
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
