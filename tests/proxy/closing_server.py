"""A server for tests of endings: it logs each signal and how it ends. python -S closing_server.py LOG KIND.

`good` ends at the end of input or on a signal; `slow` takes 1.5 s for it; `counting` logs signals and ends only at the
end of input, 0.5 s later; `stubborn` ignores all of it.
"""

import os
import select
import signal
import sys
from types import FrameType


def main() -> None:
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    kind = sys.argv[2]

    def say(text: str) -> None:
        os.write(log, f"{text}\n".encode())

    def end(code: int) -> None:
        if kind == "slow":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda number, frame: say(f"signal {number} while closing"))
            left = 1.5
            while left > 0:
                select.select([], [], [], 0.1)
                left -= 0.1
        say("closed")
        os._exit(code)

    def told(number: int, frame: FrameType | None) -> None:
        say(f"signal {number}")
        if kind in ("good", "slow"):
            end(10 + number)

    # A signal between Python's last look and the system call would lie until the call returns: wait for both at once.
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, told)
    os.write(1, b"ready\n")
    sources = [0, woken]
    while sources:
        ready, _, _ = select.select(sources, [], [])
        if woken in ready:
            os.read(woken, 64)
        if 0 in ready and not os.read(0, 4096):
            sources.remove(0)
            if kind != "stubborn":
                break
    if kind == "counting":
        select.select([], [], [], 0.5)
    end(0)


if __name__ == "__main__":
    main()
