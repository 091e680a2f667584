"""An agent made of the official SDK's client: it reads WIRETRAP_MCP_CONFIG and does the customer escalation.

Its arguments are the client's mode and the configuration's path.
"""

import json
import sys
from contextlib import AsyncExitStack

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult


def content(result: CallToolResult) -> dict[str, str]:
    assert not result.is_error
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def main(mode: str, config: str) -> None:
    with open(config, encoding="utf-8") as file:
        servers = json.load(file)["mcpServers"]
    async with AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(
                Client(
                    stdio_client(StdioServerParameters(**entry)), mode="legacy" if mode == "legacy" else "2026-07-28"
                )
            )
            for name, entry in servers.items()
        }
        profile = content(await clients["crm"].call_tool("get_customer_profile", {"customer_id": "CUST-003"}))
        update = {"ticket_id": 1, "tier": profile["tier"], "status": "escalated"}
        content(await clients["ticketing"].call_tool("update_ticket", dict(update)))
    sys.stdout.write("The ticket is escalated.\nStatus: escalated\n")


anyio.run(main, sys.argv[1], sys.argv[2])
