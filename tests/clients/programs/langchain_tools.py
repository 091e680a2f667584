"""The tools that LangChain makes of a server, as an agent of it uses them; each call is a connection of its own."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def run() -> None:
    asked = json.load(sys.stdin)
    command = asked.get("command")
    entry = (
        {"transport": "streamable_http", "url": asked["url"]}
        if command is None
        else {"transport": "stdio", "command": command[0], "args": command[1:]}
    )
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"ticketing": entry}).get_tools()}
    got = [{"tools": [{"name": name, "arguments": tool.args} for name, tool in tools.items()]}]
    for call in asked["calls"]:
        content = await tools[call["tool"]].ainvoke(call["arguments"])
        # It gives each block an id of its own making.
        got.append({"content": [block["text"] for block in content]})
    print(json.dumps(got))


asyncio.run(run())
