"""One worker process as the runner has it: what it was given, what it says, and how it is ended.

Refuses to know what its messages mean.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.results import TrialResult
from harness.worker import Job, encode

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one message; a result has a few findings, each cut to a few reasons."""


@dataclass(slots=True)
class Worker:
    """A worker. `job` is the one that it has, `last` the one before; `due` the moment at which it is stuck.

    `distrust` says what it did that no worker does; from then on it is not heard any more.
    """

    process: subprocess.Popen[bytes]
    ready: bool = False
    job: Job | None = None
    last: Job | None = None
    began: float = 0.0
    due: float | None = None
    overdue: bool = False
    distrust: str = ""
    _pending: bytearray = field(default_factory=bytearray)

    @property
    def output(self) -> int:
        """The descriptor of what it says."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, line: bytes) -> None:
        """Tell it something. That it has ended is seen where its output is read."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            return

    def give(self, job: Job, seconds: float) -> None:
        """Give it a job that has to be done in so many seconds."""
        self.job, self.began = job, time.monotonic()
        self.due = self.began + seconds
        self.send(encode(job))

    def has(self, result: TrialResult) -> bool:
        """Whether the result is of the job that it has."""
        return self.job is not None and (result.scenario, result.trial) == (self.job.scenario, self.job.trial)

    def finish(self) -> str | None:
        """Its job is done; the job's private folder."""
        self.last, self.job, self.due = self.job, None, None
        return None if self.last is None else self.last.private

    def lines(self) -> Iterator[bytes] | None:
        """Whole lines that have come, None at the end of its output. One without an end is cause for distrust."""
        chunk = os.read(self.output, 1 << 16)
        if not chunk:
            return None
        self._pending += chunk
        *whole, rest = self._pending.split(b"\n")
        self._pending = bytearray(rest)
        if len(rest) > LONGEST_LINE and not self.distrust:
            self.distrust = "a message came from it that has no end"
            self.kill()
        return iter([bytes(line) for line in whole])

    def dismiss(self) -> None:
        """Tell it that nothing more comes."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            return

    def kill(self) -> None:
        """End it at once, also when somebody has stopped it."""
        self.due = None
        for number in (signal.SIGCONT, signal.SIGKILL):
            self.process.send_signal(number)

    def bury(self) -> int:
        """Its exit code, once its output has ended."""
        self.dismiss()
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def start_worker(cancel: int) -> Worker:
    """Start a worker; `cancel` becomes readable once it is to stop."""
    return Worker(
        subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.worker", str(cancel)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(cancel,),
            # Ctrl-C on the terminal must reach the runner alone.
            start_new_session=True,
        )
    )
