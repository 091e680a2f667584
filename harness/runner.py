"""Hands the trials of a run out to workers, and brings their results in, also when it is told to stop.

Refuses to know what happens inside a trial. Each worker is a process of its own and the reaper of what its trial
started, so that trials that run at once never end each other's processes.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from harness.processes import Process, ProcessError, become_subreaper, descendants, end_descendants, find_process
from harness.results import TrialResult
from harness.verdict import Verdict
from harness.worker import RESULT, Job, Start, encode, failed
from proxy.spans import JSON

CANCEL_TIME = 30.0
"""Seconds that a worker gets to end a cancelled trial before it is ended itself; its own parts need about 15."""


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    ready: bool = False
    job: Job | None = None
    began: float = 0.0
    pending: bytearray = field(default_factory=bytearray)

    @property
    def output(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            # Its end is seen where its output is read.
            return

    def lines(self) -> Iterator[bytes] | None:
        """Whole lines that have come, None at the end of its output."""
        chunk = os.read(self.output, 1 << 16)
        if not chunk:
            return None
        self.pending += chunk
        *whole, rest = self.pending.split(b"\n")
        self.pending = bytearray(rest)
        return iter([bytes(line) for line in whole])


@contextmanager
def _interrupts() -> Iterator[int]:
    """A descriptor that is readable once Ctrl-C was pressed or SIGTERM came; a byte for each time."""
    read, write = os.pipe()

    def note(_signal: int, _frame: FrameType | None) -> None:
        os.write(write, b"x")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield read
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


@dataclass(slots=True)
class Runner:
    """Runs `jobs` in up to `at_once` workers. `on_result` hears each result as it comes."""

    start: Start
    jobs: Sequence[Job]
    at_once: int
    on_result: Callable[[TrialResult], None]
    cancelled: bool = False
    _waiting: deque[Job] = field(default_factory=deque)
    _workers: dict[int, _Worker] = field(default_factory=dict)
    _results: dict[tuple[str, int], TrialResult] = field(default_factory=dict)
    _spare: tuple[Process, ...] = ()
    _kill_at: float | None = None

    def run(self) -> tuple[TrialResult, ...]:
        """The result of every job, in the order of the jobs. No process is left afterwards."""
        become_subreaper()
        self._spare = descendants(os.getpid())
        self._waiting.extend(self.jobs)
        with _interrupts() as interrupts, selectors.DefaultSelector() as selector:
            selector.register(interrupts, selectors.EVENT_READ)
            for _ in range(min(self.at_once, len(self.jobs))):
                self._start_worker(selector)
            while self._workers:
                timeout = None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
                ready = selector.select(timeout)
                if not ready:
                    self._kill_workers()
                for key, _ in ready:
                    if key.fd == interrupts:
                        self._interrupt(len(os.read(interrupts, 64)))
                    else:
                        self._hear(key.fd, selector)
        for job in self.jobs:
            if (job.scenario, job.trial) not in self._results:
                self._take(_not_begun(job, cancelled=self.cancelled))
        return tuple(self._results[job.scenario, job.trial] for job in self.jobs)

    def _start_worker(self, selector: selectors.BaseSelector) -> None:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C on the terminal must reach this process alone.
            start_new_session=True,
        )
        worker = _Worker(process)
        self._workers[worker.output] = worker
        selector.register(worker.output, selectors.EVENT_READ)
        worker.send(encode(self.start))

    def _interrupt(self, times: int) -> None:
        if self.cancelled or times > 1:
            self._kill_workers()
        self.cancelled = True
        self._waiting.clear()
        self._kill_at = time.monotonic() + CANCEL_TIME
        for worker in self._workers.values():
            worker.process.terminate()
            if worker.job is None:
                self._dismiss(worker)

    def _kill_workers(self) -> None:
        for worker in self._workers.values():
            worker.process.kill()
        self._kill_at = None

    def _hear(self, output: int, selector: selectors.BaseSelector) -> None:
        worker = self._workers[output]
        lines = worker.lines()
        if lines is None:
            self._bury(worker, selector)
            return
        for line in lines:
            message: JSON = json.loads(line)
            match message:
                case {"ready": True}:
                    worker.ready = True
                case {"ready": False, "problem": str(problem)}:
                    self._refuse(problem)
                case _:
                    self._take(RESULT.validate_python(message))
            worker.job = None
            self._employ(worker)

    def _employ(self, worker: _Worker) -> None:
        if self._waiting:
            worker.job = self._waiting.popleft()
            worker.began = time.monotonic()
            worker.send(encode(worker.job))
        else:
            self._dismiss(worker)

    def _dismiss(self, worker: _Worker) -> None:
        assert worker.process.stdin is not None
        try:
            worker.process.stdin.close()
        except BrokenPipeError:
            return

    def _refuse(self, problem: str) -> None:
        while self._waiting:
            self._take(failed(self._waiting.popleft(), problem))

    def _bury(self, worker: _Worker, selector: selectors.BaseSelector) -> None:
        selector.unregister(worker.output)
        del self._workers[worker.output]
        self._dismiss(worker)
        code = worker.process.wait()
        assert worker.process.stdout is not None
        worker.process.stdout.close()
        if worker.job is not None:
            seconds = time.monotonic() - worker.began
            if self.cancelled:
                verdict = Verdict("error", "cancelled", "the run was cancelled, and its worker had to be ended")
                self._take(TrialResult(worker.job.scenario, worker.job.trial, verdict, seconds, worker.job.kind))
            else:
                self._take(failed(worker.job, f"the worker ended with code {code} during the trial", seconds))
        # What a worker that was killed leaves becomes ours, since we are a subreaper too.
        end_descendants(os.getpid(), spare=(*self._spare, *self._living()))
        if self._waiting and worker.ready:
            self._start_worker(selector)

    def _living(self) -> Iterator[Process]:
        for worker in self._workers.values():
            with suppress(ProcessError):
                yield find_process(worker.process.pid)

    def _take(self, result: TrialResult) -> None:
        self._results[result.scenario, result.trial] = result
        self.on_result(result)


def _not_begun(job: Job, *, cancelled: bool) -> TrialResult:
    if cancelled:
        verdict = Verdict("error", "cancelled", "the run was cancelled before the trial began")
        return TrialResult(job.scenario, job.trial, verdict, seconds=0.0, kind=job.kind)
    return failed(job, "no worker could be started for the trial; its error stands above")
