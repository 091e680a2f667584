"""A client over HTTP that costs little: one connection, raw bytes, the time taken and every answer checked.

Refuses to know who answers.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns, perf_counter

from proxy.http1 import answer_body, read_answer
from proxy.spans import JSON
from tests.bench.wire import OPENING, WireError, call_line, is_answer, request
from tests.peers.places import ROOT

PATIENCE = 60.0
"""Seconds for any answer."""


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise WireError(f"the system does not say {name}")


@dataclass(slots=True)
class Process:
    """A server or a proxy that runs: its first line on stdout says where."""

    process: subprocess.Popen[bytes]
    port: int

    @classmethod
    def start(cls, command: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> "Process":
        """Start a command that says its port, alone or in JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "stderr").open("ab") as errors:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=ROOT, start_new_session=True
            )
        assert process.stdout is not None
        told = json.loads(process.stdout.readline() or b"null")
        if told is None:
            process.kill()
            raise WireError(f"{command[0]} did not start: {(folder / 'stderr').read_text()[-200:]}")
        return cls(process, told["port"] if isinstance(told, dict) else told)

    def memory(self, name: str = "VmRSS") -> int:
        """Bytes of its memory, now or (VmHWM) at most."""
        return _status(self.process.pid, name)

    def cpu(self) -> float:
        """Seconds of processor time."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9

    def end(self) -> None:
        """Tell it to stop."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def raw_server(folder: Path, environment: Mapping[str, str]) -> Process:
    """The cheapest server."""
    return Process.start((sys.executable, "-m", "tests.bench.http_server"), folder, environment)


@dataclass(slots=True)
class HttpWire:
    """One connection of a client. `session` is sent where the server gave one."""

    port: int
    path: str = "/mcp"
    calls: int = 0
    session: str = ""
    connection: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, body: bytes) -> None:
        """Send a message."""
        session = f"mcp-session-id: {self.session}\r\n" if self.session else ""
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
            f"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
            f"mcp-protocol-version: 2025-06-18\r\n{session}"
            f"user-agent: bench\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.connection.sendall(head.encode() + body)

    def answer(self) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body of the next answer."""
        data = b""
        while (found := read_answer(data)) is None:
            data += self._read()
        head, data = found
        reader = answer_body(head, b"POST")
        parts = [reader.feed(data)]
        while not reader.ended:
            parts.append(reader.feed(self._read()))
        return head.status_code, head.headers, b"".join(parts)

    def _read(self) -> bytes:
        data = self.connection.recv(1 << 18)
        if not data:
            raise WireError("the connection was closed")
        return data

    def initialize(self) -> None:
        """Shake hands."""
        self.post(request(0, "initialize", OPENING))
        status, headers, body = self.answer()
        if status != 200:
            raise WireError(f"initialize was answered by {status}: {body[:200]!r}")
        self.session = next((value.decode() for key, value in headers if key == b"mcp-session-id"), "")
        self.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        self.answer()

    def call(self) -> float:
        """Call `echo`; seconds to its answer."""
        self.calls += 1
        line = call_line(self.calls)[:-1]
        began = perf_counter()
        self.post(line)
        _, _, body = self.answer()
        took = perf_counter() - began
        if not is_answer(message_of(body), self.calls):
            raise WireError(f"call {self.calls} was answered by {body[:200]!r}")
        return took

    def tool(self, name: str, arguments: Mapping[str, JSON]) -> None:
        """Send a call of another tool."""
        self.calls += 1
        self.post(request(self.calls, "tools/call", {"name": name, "arguments": dict(arguments)})[:-1])

    def large(self, size: int) -> float:
        """A result of so many bytes, thrown away as it comes; seconds for all of it."""
        began = perf_counter()
        self.tool("large", {"bytes": size})
        data = b""
        while (found := read_answer(data)) is None:
            data += self._read()
        head, data = found
        reader = answer_body(head, b"POST")
        got = len(reader.feed(data))
        while not reader.ended:
            got += len(reader.feed(self._read()))
        if head.status_code != 200 or got < size:
            raise WireError(f"{got} bytes came of {size}, with status {head.status_code}")
        return perf_counter() - began

    def events(self, count: int) -> list[float]:
        """Events of one stream; seconds that each took from the server's writing to here."""
        self.tool("events", {"count": count})
        data = b""
        found: list[float] = []
        while len(found) < count:
            data += self._read()
            now = monotonic_ns()
            *whole, data = data.split(b"\n\n")
            for block in whole:
                if b'"message": "' in block:
                    found.append((now - int(block.split(b'"message": "')[1].split(b'"')[0])) / 1e9)
        return found

    def close(self) -> None:
        """Go away."""
        self.connection.close()


def message_of(body: bytes) -> dict[str, JSON]:
    """The one message of an answer, JSON or an event."""
    text = body if body.startswith(b"{") else body.split(b"data: ", 1)[-1].split(b"\n", 1)[0].strip()
    message: dict[str, JSON] = json.loads(text)
    return message
