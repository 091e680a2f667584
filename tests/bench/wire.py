"""A client that costs little: it starts a command, asks it as raw lines, takes the time and checks every answer.

Refuses to know what the command is.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, Timer
from time import monotonic_ns, perf_counter

from proxy.spans import JSON

OPENING: dict[str, JSON] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
MESSAGE = "the quick brown fox jumps over the lazy dog, and then goes home to write down what it has seen"
ENDING = 20.0
"""Seconds that a command gets to end after its input has."""


class WireError(ValueError):
    """A command that does not answer, or not as it should; the message says what it did."""


def request(number: int, method: str, params: Mapping[str, JSON]) -> bytes:
    """The line of a request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def call_line(number: int) -> bytes:
    """The line of a call of `echo`, different for each number."""
    return request(number, "tools/call", {"name": "echo", "arguments": {"message": f"{MESSAGE} {number}"}})


def is_answer(message: dict[str, JSON], number: int) -> bool:
    """Whether this is the answer to a request; raises WireError where it is another one than `echo` gives."""
    if message.get("id") != number or "method" in message:
        return False
    match message:
        case {"result": {"content": [{"text": str(text)}, *_]}} if text == f"{MESSAGE} {number}":
            return True
        case _:
            raise WireError(f"call {number} was answered by {json.dumps(message)[:200]}")


@dataclass(slots=True)
class Wire:
    """One running command. `calls` counts those that were made over it."""

    process: subprocess.Popen[bytes]
    began: float
    calls: int = 0
    held: bytearray = field(default_factory=bytearray)

    @classmethod
    def start(cls, command: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> "Wire":
        """Start a command in `folder`, in a process group of its own; what it says on stderr goes to a file there."""
        with (folder / "stderr").open("ab") as errors:
            began = perf_counter()
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        return cls(process, began)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Kill the command if what is done within takes longer, so that a read from it ends."""
        timer = Timer(seconds, self.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def initialize(self) -> float:
        """Shake hands; seconds from the start of the command to its first answer."""
        self._send(request(0, "initialize", OPENING))
        while self._message().get("id") != 0:
            pass
        took = perf_counter() - self.began
        self._send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return took

    def call(self) -> float:
        """Make one call; seconds to its answer."""
        self.calls += 1
        line = call_line(self.calls)
        began = perf_counter()
        self._send(line)
        while True:
            answer = self._line()
            took = perf_counter() - began
            if is_answer(json.loads(answer), self.calls):
                return took

    def cancel(self) -> float:
        """Make a call that has no answer and cancel it; seconds until the server has read the cancellation."""
        self.calls += 1
        self._send(request(self.calls, "tools/call", {"name": "wait", "arguments": {}}))
        params = {"requestId": self.calls, "reason": "nobody waits for it"}
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode() + b"\n"
        began = monotonic_ns()
        self._send(line)
        while True:
            match self._message():
                case {"method": "notifications/message", "params": {"data": int(moment)}}:
                    return (moment - began) / 1e9

    def pipeline(self, count: int) -> float:
        """Write `count` calls without waiting, and take all answers in any order; seconds for all."""
        numbers = set(range(self.calls + 1, self.calls + count + 1))
        self.calls += count
        lines = b"".join([call_line(number) for number in sorted(numbers)])
        answers: list[bytes] = []
        writer = Thread(target=self._send, args=(lines,), daemon=True)
        began = perf_counter()
        writer.start()
        while numbers:
            answers += self._lines(len(numbers))
            took = perf_counter() - began
            for answer in answers:
                message = json.loads(answer)
                number = message.get("id")
                if isinstance(number, int) and number in numbers and is_answer(message, number):
                    numbers.discard(number)
            answers.clear()
        writer.join()
        return took

    def peak_memory(self) -> int:
        """Bytes of memory that the command's own process has had at most (VmHWM), without its children."""
        return self._status("VmHWM")

    def memory(self) -> int:
        """Bytes of memory that the command's own process has now (VmRSS)."""
        return self._status("VmRSS")

    def cpu(self) -> float:
        """Seconds of processor time that the command's own process has used, by all threads."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9

    def end(self) -> None:
        """Close the input, wait for the end, and leave nothing of the group behind."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process.wait()
        self.process.stdout.close()

    def kill(self) -> None:
        """Kill the command and what it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise WireError(f"the system does not say {name}")

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.process.stdin.fileno(), view) :]
        except OSError:
            # That it has ended is seen where its output is read.
            return

    def _read(self) -> None:
        assert self.process.stdout is not None
        chunk = os.read(self.process.stdout.fileno(), 1 << 18)
        if not chunk:
            raise WireError("it ended, or did not answer in time")
        self.held += chunk

    def _line(self) -> bytes:
        while (end := self.held.find(b"\n") + 1) == 0:
            self._read()
        line = bytes(self.held[:end])
        del self.held[:end]
        return line

    def _lines(self, count: int) -> list[bytes]:
        seen = self.held.count(b"\n")
        while seen < count:
            before = len(self.held)
            self._read()
            seen += self.held.count(b"\n", before)
        lines = self.held.splitlines(keepends=True)
        self.held = bytearray()
        if not lines[-1].endswith(b"\n"):
            self.held = lines.pop()
        return [bytes(line) for line in lines]

    def _message(self) -> dict[str, JSON]:
        message: dict[str, JSON] = json.loads(self._line())
        return message
