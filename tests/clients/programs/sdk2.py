"""A client of the Python SDK 2.x. Each program here reads a server and calls as JSON, and prints what it got."""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters


async def run() -> None:
    asked = json.load(sys.stdin)
    command = asked.get("command")
    server = asked["url"] if command is None else StdioServerParameters(command=command[0], args=command[1:])
    async with Client(server) as client:
        got = [await client.list_tools()]
        got += [await client.call_tool(call["tool"], call["arguments"]) for call in asked["calls"]]
    print(json.dumps([one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in got]))


anyio.run(run)
