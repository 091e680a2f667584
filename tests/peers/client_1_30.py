"""A client of the SDK 1.30, run by the interpreter of its venv: what it says on stdin is a server and calls, as JSON.

It prints what it got, as JSON: the negotiated version, the tools and the results.
"""

import json
import sys

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def run() -> None:
    asked = json.load(sys.stdin)
    parameters = StdioServerParameters(command=asked["command"][0], args=asked["command"][1:], env=asked["environment"])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        opened = await session.initialize()
        tools = await session.list_tools()
        results = [await session.call_tool(call["tool"], call["arguments"]) for call in asked["calls"]]
    got = [opened, tools, *results]
    print(json.dumps([one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in got]))


anyio.run(run)
