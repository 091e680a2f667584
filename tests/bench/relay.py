"""A plain byte relay in front of a command: two threads, nothing looked at. What any proxy in Python costs at least.

python -S -E relay.py COMMAND...
"""

import os
import subprocess
import sys
from threading import Thread


def pump(source: int, sink: int) -> None:
    """Bytes from one to the other until the source ends, then close the sink."""
    while chunk := os.read(source, 1 << 18):
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(sink, rest) :]
    os.close(sink)


def main() -> int:
    """Relay until the server's output ends; its exit code."""
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    assert process.stdout is not None
    Thread(target=pump, args=(0, os.dup(process.stdin.fileno())), daemon=True).start()
    process.stdin.close()
    pump(process.stdout.fileno(), 1)
    return process.wait()


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main())
