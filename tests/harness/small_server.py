"""A server of the standard library alone, so that it starts fast: one tool, `echo`, that gives its arguments back."""

import json
import sys

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}

for line in sys.stdin.buffer:
    request = json.loads(line)
    match request.get("method"):
        case "initialize":
            result = {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "small", "version": "1"},
            }
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            text = json.dumps(request["params"].get("arguments"))
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            continue
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
