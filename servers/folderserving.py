"""Answers the MCP requests about a folder's resources and its prompt. Knows no tools, and changes nothing."""

import base64

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    BlobResourceContents,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
)

from servers.fixture import ToolError
from servers.folderfixture import FolderPlace
from servers.resources import ResourceError, file_path, file_uri, listed_files

NOT_FOUND = -32002
"""What a missing resource is before protocol 2026-07-28, which says INVALID_PARAMS."""


class FolderHandlers:
    """The handlers of one server over an open folder."""

    def __init__(self, place: FolderPlace) -> None:
        self._folder = place.folder
        self._scheme = place.fixture.scheme
        self._prompt = place.fixture.prompt

    async def list_resources(
        self, _: ServerRequestContext, __: PaginatedRequestParams | None = None
    ) -> ListResourcesResult:
        """Every file that the tools can name, on one page."""
        try:
            files = listed_files(self._folder)
        except ToolError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        return ListResourcesResult(
            resources=[Resource(uri=file_uri(self._scheme, path), name=path, size=size) for path, size in files]
        )

    async def read_resource(
        self, context: ServerRequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """One file: its text, or in base64 what is no UTF-8."""
        try:
            contents = self._contents(file_path(self._scheme, params.uri))
        except (ResourceError, ToolError) as error:
            # Versions are dates, so their order is that of the text.
            code = INVALID_PARAMS if context.protocol_version >= "2026-07-28" else NOT_FOUND
            raise MCPError(code, str(error)) from error
        return ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _: ServerRequestContext, __: PaginatedRequestParams | None = None
    ) -> ListPromptsResult:
        """The one prompt."""
        path = PromptArgument(name="path", description="The file's path inside the folder.", required=True)
        return ListPromptsResult(
            prompts=[Prompt(name=self._prompt.name, description=self._prompt.description, arguments=[path])]
        )

    async def get_prompt(self, _: ServerRequestContext, params: GetPromptRequestParams) -> GetPromptResult:
        """The prompt's text, and the file as an embedded resource."""
        given = params.arguments or {}
        if params.name != self._prompt.name:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name}")
        if given.keys() != {"path"}:
            raise MCPError(INVALID_PARAMS, f"{self._prompt.name} takes exactly the argument path")
        try:
            contents = self._contents(given["path"])
        except ToolError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        return GetPromptResult(
            description=self._prompt.description,
            messages=[
                PromptMessage(role="user", content=TextContent(text=self._prompt.text)),
                PromptMessage(role="user", content=EmbeddedResource(resource=contents)),
            ],
        )

    def _contents(self, path: str) -> TextResourceContents | BlobResourceContents:
        data = self._folder.read(path)
        uri = file_uri(self._scheme, path)
        try:
            return TextResourceContents(uri=uri, mime_type="text/plain", text=data.decode())
        except UnicodeDecodeError:
            blob = base64.b64encode(data).decode("ascii")
            return BlobResourceContents(uri=uri, mime_type="application/octet-stream", blob=blob)
