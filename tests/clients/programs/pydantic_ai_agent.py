"""An agent of pydantic-ai with its test model, which calls the tools of `calls` with arguments of its own making."""

import asyncio
import json
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models.test import TestModel


async def run() -> None:
    asked = json.load(sys.stdin)
    command = asked.get("command")
    tools = [call["tool"] for call in asked["calls"]]
    toolset = MCPToolset(
        asked["url"] if command is None else StdioTransport(command[0], command[1:]), tool_error_behavior="failed"
    )
    model = TestModel(call_tools=tools)
    result = await Agent(model, toolsets=[toolset]).run("Go on.")
    offered = [tool.name for tool in model.last_model_request_parameters.function_tools]
    got = [{"tools": [{"name": name} for name in offered]}]
    for message in result.all_messages():
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                got.append({"called": {"tool": part.tool_name, "arguments": part.args_as_dict()}})
            if isinstance(part, ToolReturnPart):
                got.append({"answer": part.model_response_str()})
    print(json.dumps(got))


asyncio.run(run())
