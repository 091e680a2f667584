"""A server of the standard library alone, so that it starts fast: a tool `echo` that gives its arguments back.

Its arguments are the names of more tools, which do the same.
"""

import json
import sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", *sys.argv[1:])]

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
            result = {"tools": TOOLS}
        case "tools/call":
            text = json.dumps(request["params"].get("arguments"))
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            continue
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
