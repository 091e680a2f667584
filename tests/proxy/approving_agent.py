"""An agent that starts the proxy, calls a tool, and tries to approve its own call when it is told the code."""

import json
import subprocess
import sys

wiretrap, folder, *proxy = sys.argv[1:]
server = subprocess.Popen([wiretrap, *proxy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert server.stdin is not None
assert server.stdout is not None
for order in sys.stdin:
    words = order.split()
    if words[0] == "call":
        params = {"name": "pay", "arguments": {"amount": int(words[2])}}
        message = {"jsonrpc": "2.0", "id": int(words[1]), "method": "tools/call", "params": params}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
    elif words[0] == "answer":
        sys.stdout.write(server.stdout.readline().decode())
    else:
        command = [wiretrap, "approve", "grant", folder, words[1]]
        tried = subprocess.run(command, input=words[2], capture_output=True, text=True, check=False)
        sys.stdout.write(json.dumps([tried.returncode, tried.stderr]) + "\n")
    sys.stdout.flush()
server.stdin.close()
server.stdout.read()
sys.exit(server.wait())
