"""A server that notes every call in a file, a line for each, before it answers."""

import json
import sys

for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[1], "a") as file:
        file.write(json.dumps(asked["params"]["arguments"]) + "\n")
    result = {"content": [{"type": "text", "text": "paid"}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
    sys.stdout.flush()
