"""A server for tests of the wire, without an SDK: it logs what it reads, byte by byte, and says what it is told.

python -S raw_server.py LOG MODE [FILE]: `answer` answers each line that has an id, `echo` does with the line in it,
`silent` none, `say` writes FILE to stdout and then reads, `environment` writes its environment as a line, `close`
closes stdout at once.
"""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    mode = sys.argv[2]
    if mode == "say":
        sys.stdout.buffer.write(Path(sys.argv[3]).read_bytes())
        sys.stdout.buffer.flush()
    if mode == "environment":
        about = {"environment": dict(os.environ), "group": os.getpgrp(), "pid": os.getpid(), "parent": os.getppid()}
        sys.stdout.write(json.dumps(about) + "\n")
        sys.stdout.flush()
    if mode == "close":
        os.close(1)
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            return
        os.write(log, line)
        if mode not in {"answer", "echo"}:
            continue
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and "id" in message:
            content = [{"type": "text", "text": line.decode()}] if mode == "echo" else []
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content, "isError": False}}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
