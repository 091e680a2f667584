"""A client of the Python SDK 1.30."""

import json
import sys

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def run() -> None:
    asked = json.load(sys.stdin)
    command = asked.get("command")
    transport = (
        streamable_http_client(asked["url"])
        if command is None
        else stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    )
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        got = [await session.list_tools()]
        got += [await session.call_tool(call["tool"], call["arguments"]) for call in asked["calls"]]
    print(json.dumps([one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in got]))


anyio.run(run)
