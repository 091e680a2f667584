"""`make soak`, over HTTP: 100,000 calls, 3,000 sessions, large results; memory stays flat. Figures, and an exit code.

It ends by itself. Refuses to know how long anything takes elsewhere.
"""

import sys
import tempfile
from pathlib import Path
from time import perf_counter

from proxy.http1 import answer_body, read_answer
from tests.bench.contestants import environment
from tests.bench.http import opened, ours
from tests.bench.http_wire import HttpWire, Process, raw_server
from tests.bench.soak import answered_calls

SHOWN = (1_000, 10_000, 50_000, 100_000)
SESSIONS = 3_000
"""Of which the first third fills what is remembered of heads, a few megabytes; those behind it must add nothing."""
MOST_GROWTH = 4_000_000
"""Bytes that the proxy may grow by; one kept call each would be some 50 MB."""
LARGE, HUGE = 20_000_000, 200_000_000


def calls(proxy: Process, most: int) -> bool:
    """Calls over one connection; whether memory stayed flat from a tenth of them on."""
    wire = opened(proxy.port)
    sizes: dict[int, int] = {}
    began = perf_counter()
    for done in range(1, most + 1):
        wire.call()
        if done in SHOWN or done in {most, most // 10}:
            sizes[done] = proxy.memory()
            print(
                f"{done:>7,} calls: {sizes[done] / 1e6:.2f} MB, {perf_counter() - began:.1f} s, CPU {proxy.cpu():.1f} s"
            )
            sys.stdout.flush()
    wire.close()
    return sizes[most] - sizes[most // 10] <= MOST_GROWTH


def sessions(proxy: Process) -> bool:
    """Sessions that begin, call once and end; whether memory stayed flat from a third of them on."""
    wire = opened(proxy.port)
    sizes = []
    for number in range(1, SESSIONS + 1):
        wire.session = f"s{number}"
        wire.call()
        ending = f"DELETE /mcp HTTP/1.1\r\nhost: 127.0.0.1:{wire.port}\r\nmcp-session-id: s{number}\r\n\r\n"
        wire.connection.sendall(ending.encode())
        wire.answer()
        if number in {SESSIONS // 30, SESSIONS // 3, SESSIONS}:
            sizes.append(proxy.memory())
            print(f"{number:>7,} sessions: {sizes[-1] / 1e6:.2f} MB", flush=True)
    wire.close()
    return sizes[2] - sizes[1] <= MOST_GROWTH // 2


def large(proxy: Process) -> bool:
    """Results of 20 and 200 MB, JSON; whether the larger one needs no more memory at most."""
    wire = HttpWire(proxy.port)
    sizes = []
    for size in (LARGE, LARGE, HUGE):
        wire.large(size)
        wire.call()
        sizes.append(proxy.memory("VmHWM"))
        print(f"a result of {size / 1e6:.0f} MB: {sizes[-1] / 1e6:.1f} MB at most", flush=True)
    wire.close()
    return sizes[2] - sizes[1] <= 4 * MOST_GROWTH


def silence(port: int, seconds: float) -> bool:
    """An event stream in which nothing comes for so long, and then an event."""
    wire = opened(port)
    wire.tool("silent", {"seconds": seconds})
    data, said = b"", b""
    began = perf_counter()
    while (found := read_answer(data)) is None:
        data += wire.connection.recv(1 << 16)
    wire.connection.settimeout(seconds + 30)
    reader = answer_body(found[0], b"POST")
    said = reader.feed(found[1])
    while not reader.ended:
        said += reader.feed(wire.connection.recv(1 << 16))
    took = perf_counter() - began
    print(f"{took:.1f} s of silence, and then {said[-60:]!r}")
    return took >= seconds and b'"result"' in said


def main() -> int:
    """Both commands: `make soak` (with a number of calls), and `make silence` (with `silence` and seconds)."""
    with tempfile.TemporaryDirectory(prefix="wiretrap-soak-") as name:
        folder = Path(name)
        server = raw_server(folder / "server", environment(folder))
        command = ours(folder / "ours", f"http://127.0.0.1:{server.port}/mcp")
        proxy = Process.start(command, folder / "ours", environment(folder))
        try:
            if sys.argv[1:2] == ["silence"]:
                fine = silence(proxy.port, float(sys.argv[2]) if len(sys.argv) > 2 else 90.0)
            else:
                most = int(sys.argv[1]) if len(sys.argv) > 1 else SHOWN[-1]
                parts = [calls(proxy, most), sessions(proxy)]
                recorded = answered_calls(folder / "ours" / "spans")
                print(f"{recorded:,} calls with their own answer in the spans")
                fine = all([*parts, recorded == most + SESSIONS, large(proxy)])
        finally:
            proxy.end()
            server.end()
    print("as it should be" if fine else "NOT as it should be")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
