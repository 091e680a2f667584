"""A proxy over stdio in front of the raw server, as a client has it."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from time import monotonic

from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import Span

RAW = str(Path(__file__).with_name("raw_server.py"))
WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
DEADLINE = 60.0


def call(number: int | str, tool: str = "fine") -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":{}}}\n' % (
        json.dumps(number).encode(),
        tool.encode(),
    )


class Wire:
    """A proxy in front of the raw server, as a client has it."""

    def __init__(self, folder: Path) -> None:
        self.spans_folder = folder / "spans"
        self.log = folder / "server.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, *server: str, options: tuple[str, ...] = (), command: tuple[str, ...] = (), **environment: str
    ) -> subprocess.Popen[bytes]:
        command = command or (sys.executable, "-S", RAW, str(self.log), *server)
        process = subprocess.Popen(
            [WIRETRAP, "proxy", "stdio", "--server", "x", "--spans", str(self.spans_folder), *options, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def spans(self, kind: str = "") -> list[Span]:
        notes: list[str] = []
        found = list(read_spans([str(self.spans_folder)], notes.append))
        return [span for span in found if not kind or span.attributes[v.SPAN_KIND] == kind]

    def logged(self) -> bytes:
        return self.log.read_bytes() if self.log.exists() else b""

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def read_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = b""
    end = monotonic() + DEADLINE
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(end - monotonic(), 0))
        assert ready, f"no line came; so far {line!r}"
        piece = os.read(process.stdout.fileno(), 1)
        if not piece:
            return line
        line += piece
    return line


def finish(process: subprocess.Popen[bytes], data: bytes = b"") -> tuple[bytes, bytes]:
    return process.communicate(data, timeout=DEADLINE)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or while it was read
        return True


def until_gone(pid: int) -> None:
    end = monotonic() + DEADLINE
    while not gone(pid):
        assert monotonic() < end, f"process {pid} is still there"
        select.select([], [], [], 0.01)
