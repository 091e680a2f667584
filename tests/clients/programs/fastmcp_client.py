"""FastMCP's client."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def run() -> None:
    asked = json.load(sys.stdin)
    command = asked.get("command")
    async with Client(asked["url"] if command is None else StdioTransport(command[0], command[1:])) as client:
        got = [await client.list_tools_mcp()]
        got += [await client.call_tool_mcp(call["tool"], call["arguments"]) for call in asked["calls"]]
    print(json.dumps([one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in got]))


asyncio.run(run())
