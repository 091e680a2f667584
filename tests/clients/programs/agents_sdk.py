"""The servers of the OpenAI Agents SDK, as an agent of it uses them."""

import asyncio
import json
import sys

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp


async def run() -> None:
    asked = json.load(sys.stdin)
    command = asked.get("command")
    server = (
        MCPServerStreamableHttp(params={"url": asked["url"]})
        if command is None
        else MCPServerStdio(params={"command": command[0], "args": command[1:]}, client_session_timeout_seconds=60)
    )
    async with server:
        got = [{"tools": [tool.model_dump(mode="json") for tool in await server.list_tools()]}]
        for call in asked["calls"]:
            answer = await server.call_tool(call["tool"], call["arguments"])
            got.append(answer.model_dump(mode="json", by_alias=True))
    print(json.dumps(got))


asyncio.run(run())
