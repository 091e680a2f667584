"""The same `echo` as server.py, by the SDK: the second setting, in which the server costs what servers usually cost."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")


@server.tool()
def echo(message: str) -> str:
    """Say it again."""
    return message


if __name__ == "__main__":
    server.run()
