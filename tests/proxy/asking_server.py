"""An SDK server that asks its client back: over the wire in the old era, inside results in the new one.

python -P asking_server.py LOG [http]; with that word over Streamable HTTP, at the port that it prints. Tools: `ask`
asks for sampling, an elicitation and the roots; `slow` waits to be cancelled and logs that it was; `progress` reports
twice; `plain` just answers.
"""

import os
import socket
import sys
import warnings
from collections.abc import Mapping

import anyio
import mcp_types as t
import uvicorn
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server

warnings.simplefilter("ignore")
LOG = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
HELLO = t.SamplingMessage(role="user", content=t.TextContent(text="say hello"))
TOOLS = ("ask", "slow", "progress", "plain")


def text(said: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=said)])


def said_by_client(answers: Mapping[str, object]) -> t.CallToolResult:
    sampled, elicited, roots = answers["sample"], answers["elicit"], answers["roots"]
    assert isinstance(sampled, t.CreateMessageResult)
    assert isinstance(elicited, t.ElicitResult)
    assert isinstance(roots, t.ListRootsResult)
    spoken = sampled.content.text if isinstance(sampled.content, t.TextContent) else ""
    name = (elicited.content or {}).get("name")
    return text(f"{spoken}, {name}, at {roots.roots[0].uri}")


async def ask_on_the_wire(ctx: ServerRequestContext) -> t.CallToolResult:
    """Three requests at once, so that their answers may come in any order."""
    answers: dict[str, object] = {}

    async def sample() -> None:
        answers["sample"] = await ctx.session.create_message([HELLO], max_tokens=9, related_request_id=ctx.request_id)

    async def elicit() -> None:
        answers["elicit"] = await ctx.session.elicit_form("who?", SCHEMA, related_request_id=ctx.request_id)

    async def roots() -> None:
        answers["roots"] = await ctx.session.list_roots()

    async with anyio.create_task_group() as group:
        for one in (sample, elicit, roots):
            group.start_soon(one)
    return said_by_client(answers)


async def call_tool(
    ctx: ServerRequestContext, params: t.CallToolRequestParams
) -> t.CallToolResult | t.InputRequiredResult:
    match params.name:
        case "ask" if ctx.protocol_version < "2026":
            return await ask_on_the_wire(ctx)
        case "ask" if params.input_responses:
            return said_by_client(params.input_responses)
        case "ask":
            form = t.ElicitRequestFormParams(message="who?", requested_schema=SCHEMA)
            sampling = t.CreateMessageRequestParams(messages=[HELLO], max_tokens=9)
            return t.InputRequiredResult(
                input_requests={
                    "sample": t.CreateMessageRequest(params=sampling),
                    "elicit": t.ElicitRequest(params=form),
                    "roots": t.ListRootsRequest(),
                },
                request_state="the state of the first round",
            )
        case "slow":
            os.write(LOG, b"slow began\n")
            try:
                await anyio.sleep(60)
            except anyio.get_cancelled_exc_class():
                os.write(LOG, b"slow was cancelled\n")
                raise
            return text("slow ended")
        case "progress":
            await ctx.session.report_progress(1, 2)
            await ctx.session.report_progress(2, 2)
            return text("progress ended")
        case _:
            return text("plain")


async def list_tools(ctx: ServerRequestContext, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[t.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


async def main() -> None:
    server = Server("asking", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions()))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        app = Server("asking", version="1", on_list_tools=list_tools, on_call_tool=call_tool).streamable_http_app()
        listening = socket.create_server(("127.0.0.1", 0))
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)).run(sockets=[listening])
    else:
        anyio.run(main)
