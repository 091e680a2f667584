"""The cheapest MCP server there is, so that what stands in front of it is what is measured: raw lines, no SDK.

python -S -E server.py. It answers initialize, ping, tools/list and calls of `echo`, all of one read in one write. A
call of `wait` has no answer, and a cancellation is told of with the moment (CLOCK_MONOTONIC, ns) at which it was read.
"""

import json
import os
from time import monotonic_ns

TOOL = {
    "name": "echo",
    "description": "Say it again.",
    "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
}


def result_of(message: dict[str, object]) -> object:
    """The result for a request, None where the method is not known."""
    params = message.get("params")
    match message.get("method"):
        case "tools/call" if isinstance(params, dict):
            return {"content": [{"type": "text", "text": params["arguments"]["message"]}], "isError": False}
        case "initialize" if isinstance(params, dict):
            about = {"name": "bench", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
        case "ping":
            return {}
        case _:
            return None


def answer(line: bytes) -> bytes:
    """The answer to a line, empty for a notification."""
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        data = {"level": "info", "data": monotonic_ns()}
        return json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": data}).encode() + b"\n"
    if "id" not in message or message.get("params", {}).get("name") == "wait":
        return b""
    result = result_of(message)
    body = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}, separators=(",", ":")).encode() + b"\n"


def main() -> None:
    """Serve until the input ends."""
    held = b""
    while chunk := os.read(0, 1 << 18):
        *lines, held = (held + chunk).split(b"\n")
        said = memoryview(b"".join([answer(line) for line in lines if line]))
        while said:
            said = said[os.write(1, said) :]


if __name__ == "__main__":
    main()
