"""Starts a command in a session of its own and waits for it: `python -P -m harness.targets.apart COMMAND ARG…`.

For agents that kill their servers as they leave: it is this process that they kill, while the proxy sees the end of its
input and gets to write the end of its record. Refuses to know the command.
"""

import subprocess
import sys


def main(command: list[str]) -> int:
    """Run the command over our own standard streams; its exit code, and 127 where it cannot be started."""
    try:
        code = subprocess.Popen(command, start_new_session=True).wait()
    except OSError as error:
        sys.stderr.write(f"wiretrap: cannot start {command[0]!r}: {error.strerror}\n")
        return 127
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
