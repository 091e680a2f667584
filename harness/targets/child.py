"""A channel to a server that is a child process of ours: its standard input and output, a line each message.

Refuses to know MCP.
"""

import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.targets.client import ServerEndedError
from harness.targets.deadline import Deadline

CHUNK = 1 << 16


class StartError(ValueError):
    """A command that could not be started, and why."""


@dataclass(slots=True)
class ChildChannel:
    """Lines to and from one child. Make it with `start_child`."""

    name: str
    process: subprocess.Popen[bytes]
    deadline: Deadline
    _pending: bytearray = field(default_factory=bytearray)
    _ended: bool = False

    @property
    def _input(self) -> int:
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def _output(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def _read(self) -> None:
        try:
            chunk = os.read(self._output, CHUNK)
        except BlockingIOError:
            return
        self._pending += chunk
        self._ended = not chunk

    def send(self, line: bytes) -> None:
        """Write a whole line; output of the child is taken in meanwhile, so that neither waits for the other."""
        rest = memoryview(line)
        while rest:
            events = (
                {self._input: select.POLLOUT}
                if self._ended
                else {self._input: select.POLLOUT, self._output: select.POLLIN}
            )
            ready = self.deadline.wait(events)
            if self._output in ready and not self._ended:
                self._read()
            if self._input in ready:
                try:
                    rest = rest[os.write(self._input, rest) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError as error:
                    raise ServerEndedError(self._said()) from error

    def receive(self) -> bytes:
        """The next whole line, without its newline."""
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            if self._ended:
                raise ServerEndedError(self._said())
            searched = len(self._pending)
            self.deadline.wait({self._output: select.POLLIN})
            self._read()
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line

    def _said(self) -> str:
        return f"server {self.name} ended; what it said last is in agent.err"

    def close_input(self) -> None:
        """Close the child's standard input: no more lines come."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()

    def close(self) -> None:
        """Read the rest of the output away, and wait for the child's end."""
        self.close_input()
        while not self._ended:
            self._pending.clear()
            self.deadline.wait({self._output: select.POLLIN})
            self._read()
        descriptor = os.pidfd_open(self.process.pid)
        try:
            self.deadline.wait({descriptor: select.POLLIN})
        finally:
            os.close(descriptor)
        self.process.wait()

    def abandon(self) -> None:
        """Let go of the pipes; whoever ends the process does that by its id."""
        self.close_input()
        assert self.process.stdout is not None
        self.process.stdout.close()


def start_child(
    name: str, command: Sequence[str], environment: Mapping[str, str], errors: Path, deadline: Deadline
) -> ChildChannel:
    """Start a server command; its standard error is appended to the file `errors`. Raises StartError."""
    with errors.open("ab") as stderr:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                bufsize=0,
            )
        except OSError as error:
            raise StartError(f"server {name}: cannot start {command[0]!r}: {error.strerror}") from error
    channel = ChildChannel(name, process, deadline)
    assert process.stdin is not None
    assert process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    os.set_blocking(process.stdout.fileno(), False)
    return channel
