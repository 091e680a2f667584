"""Hands the trials of a run out to workers, and brings their results in, also when it is told to stop.

Refuses to know what happens inside a trial. Each worker is a process of its own and the reaper of what its trial
started, so that trials that run at once never end each other's processes. Agents run with our rights, so nothing that
comes from a worker is taken on trust: a result counts for the job that the worker has, once, and as its files say it.
"""

import json
import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

from harness.crew import Worker, start_worker
from harness.hiding import Hiding, make_hiding
from harness.judge import tampered
from harness.privatefolder import PrivateFolder, clear_stale, make_private_folder
from harness.processes import (
    Process,
    ProcessError,
    become_subreaper,
    descendants,
    end_descendants,
    find_process,
    keep_private,
)
from harness.results import TrialResult
from harness.runfolder import TrialFolder
from harness.trial import verdict_text
from harness.verdict import Status, Verdict
from harness.worker import RESULT, Job, Start, encode, failed
from proxy.plainfile import open_plain
from proxy.spans import JSON

CANCEL_TIME = 30.0
"""Seconds that a worker gets to end a cancelled trial before it is ended itself; its own parts need about 15."""
BACKSTOP = 120.0
"""Seconds past `limits.seconds` after which a worker that has given no result is stuck; its own parts need far less."""


CANCELLED = "the run was cancelled before the trial began"


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
    """Runs `jobs` in up to `at_once` workers. `on_result` hears each result as it comes.

    `hiding` hides the run's secrets in what is kept of a trial whose worker cannot do so.
    """

    start: Start
    jobs: Sequence[Job]
    at_once: int
    on_result: Callable[[TrialResult], None]
    backstop: float = BACKSTOP
    hiding: Hiding = field(default_factory=lambda: make_hiding({}, bytes(32)))
    cancelled: bool = False
    stopped: str | None = None
    _waiting: deque[Job] = field(default_factory=deque)
    _workers: dict[int, Worker] = field(default_factory=dict)
    _results: dict[tuple[str, int], TrialResult] = field(default_factory=dict)
    _private: dict[str, PrivateFolder] = field(default_factory=dict)
    _spare: tuple[Process, ...] = ()
    _cancel: tuple[int, int] = (-1, -1)
    _kill_at: float | None = None

    def run(self) -> tuple[TrialResult, ...]:
        """The result of every job, in the order of the jobs. No process and no private folder is left afterwards."""
        keep_private()
        become_subreaper()
        clear_stale()
        self._spare = descendants(os.getpid())
        self._waiting.extend(self.jobs if self.stopped is None else ())
        # Readable for every worker once a byte is in it, or once we have ended.
        self._cancel = os.pipe()
        try:
            with _interrupts() as interrupts, selectors.DefaultSelector() as selector:
                selector.register(interrupts, selectors.EVENT_READ)
                self._serve(interrupts, selector)
        finally:
            for worker in self._workers.values():
                worker.kill()
            for private in tuple(self._private):
                self._clear(private)
            for descriptor in self._cancel:
                os.close(descriptor)
        for job in self.jobs:
            if (job.scenario, job.trial) not in self._results:
                self._take(_not_begun(job, self.stopped or (CANCELLED if self.cancelled else None)))
        return tuple(self._results[job.scenario, job.trial] for job in self.jobs)

    def stop(self, why: str) -> None:
        """Begin no further trial; those that are under way come to their end."""
        self.stopped = self.stopped or why
        self._waiting.clear()

    def _serve(self, interrupts: int, selector: selectors.BaseSelector) -> None:
        for _ in range(min(self.at_once, len(self._waiting))):
            self._start_worker(selector)
        while self._workers:
            moments = [worker.due for worker in self._workers.values() if worker.due is not None]
            if self._kill_at is not None:
                moments.append(self._kill_at)
            timeout = max(0.0, min(moments) - time.monotonic()) if moments else None
            for key, _ in selector.select(timeout):
                if key.fd == interrupts:
                    self._interrupt(len(os.read(interrupts, 64)))
                else:
                    self._hear(key.fd, selector)
            self._end_overdue(time.monotonic())

    def _start_worker(self, selector: selectors.BaseSelector) -> None:
        worker = start_worker(self._cancel[0])
        self._workers[worker.output] = worker
        selector.register(worker.output, selectors.EVENT_READ)
        worker.send(encode(self.start))

    def _interrupt(self, times: int) -> None:
        if self.cancelled or times > 1:
            self._kill_workers()
        if not self.cancelled:
            os.write(self._cancel[1], b"x")
        self.cancelled = True
        self._waiting.clear()
        self._kill_at = time.monotonic() + CANCEL_TIME
        for worker in self._workers.values():
            if worker.job is None:
                worker.dismiss()

    def _kill_workers(self) -> None:
        for worker in self._workers.values():
            worker.kill()
        self._kill_at = None

    def _end_overdue(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_workers()
        for worker in self._workers.values():
            if worker.due is not None and now >= worker.due:
                worker.overdue = True
                worker.kill()

    def _hear(self, output: int, selector: selectors.BaseSelector) -> None:
        worker = self._workers[output]
        lines = worker.lines()
        if lines is None:
            self._bury(worker, selector)
            return
        for line in lines:
            if worker.distrust:
                return
            match _read(line):
                case {"ready": True}:
                    worker.ready = True
                case {"ready": False, "problem": str(problem)}:
                    self._refuse(problem)
                case TrialResult() as result if worker.has(result):
                    self._take(self._checked(worker, result))
                    self._clear(worker.finish())
                case TrialResult():
                    worker.distrust = "a result came from it that nobody had asked for"
                case _:
                    worker.distrust = "something came from it that is no result"
            if worker.distrust:
                worker.kill()
            else:
                self._employ(worker)

    def _employ(self, worker: Worker) -> None:
        if not self._waiting:
            worker.dismiss()
            return
        private = make_private_folder(keep=self.hiding if self.start.keep else None)
        self._private[str(private.path)] = private
        job = replace(self._waiting.popleft(), private=str(private.path))
        worker.give(job, job.seconds + self.backstop)

    def _clear(self, private: str | None) -> None:
        if private is not None and (folder := self._private.pop(private, None)) is not None:
            folder.remove()

    def _refuse(self, problem: str) -> None:
        while self._waiting:
            self._take(failed(self._waiting.popleft(), problem))

    def _bury(self, worker: Worker, selector: selectors.BaseSelector) -> None:
        selector.unregister(worker.output)
        del self._workers[worker.output]
        code = worker.bury()
        if worker.job is not None:
            self._take(self._lost(worker, worker.job, code))
        elif worker.last is not None and not self.cancelled and (worker.distrust or code < 0):
            # Its last result may be somebody else's.
            key = worker.last.scenario, worker.last.trial
            self._results[key] = self._lost(worker, worker.last, code)
        # What a worker that was killed leaves becomes ours, since we are a subreaper too.
        end_descendants(os.getpid(), spare=(*self._spare, *self._living()))
        self._clear(None if worker.job is None else worker.job.private)
        if self._waiting and worker.ready:
            self._start_worker(selector)

    def _lost(self, worker: Worker, job: Job, code: int) -> TrialResult:
        """The result of a trial whose worker is gone."""
        seconds = time.monotonic() - worker.began
        if self.cancelled and not worker.distrust:
            verdict = Verdict("error", "cancelled", "the run was cancelled, and its worker had to be ended")
            return TrialResult(job.scenario, job.trial, verdict, seconds, job.kind)
        if worker.overdue:
            reason = f"its worker did not answer and was ended {self.backstop:.0f} s after limits.seconds"
            return _broken(job, reason, seconds, "agent_timeout")
        if worker.distrust:
            return _broken(job, f"its worker was ended, since {worker.distrust}", seconds)
        return _broken(job, f"the worker ended with code {code} during the trial", seconds)

    def _checked(self, worker: Worker, result: TrialResult) -> TrialResult:
        """The result, or one that says why it is not believed."""
        assert worker.job is not None
        if result.verdict.status == "cancelled" and not self.cancelled:
            return _broken(worker.job, "the trial was told to stop, and nobody had cancelled the run", result.seconds)
        if result.verdict.result in ("pass", "not_run") and not self._stands_in_folder(result):
            return _broken(worker.job, "verdict.json is not as its worker says it", result.seconds)
        return result

    def _stands_in_folder(self, result: TrialResult) -> bool:
        folder = TrialFolder(Path(self.start.run_folder) / result.scenario / str(result.trial))
        wanted = verdict_text(self.start.run_id, result).encode("utf-8", "surrogateescape")
        try:
            with open_plain(folder.verdict) as file:
                return file.read(len(wanted) + 1) == wanted
        except OSError:
            return False

    def _living(self) -> Iterator[Process]:
        for worker in self._workers.values():
            with suppress(ProcessError):
                yield find_process(worker.process.pid)

    def _take(self, result: TrialResult) -> None:
        self._results[result.scenario, result.trial] = result
        self.on_result(result)


def _read(line: bytes) -> "JSON | TrialResult":
    """What a line of a worker says, None where it says nothing that is known."""
    try:
        message: JSON = json.loads(line)
        return message if isinstance(message, dict) and "ready" in message else RESULT.validate_python(message)
    except (ValueError, RecursionError):
        return None


def _broken(job: Job, reason: str, seconds: float, status: Status = "agent_crash") -> TrialResult:
    """The result of a trial that cannot be believed or has none: an agent's own doing, where it is a program."""
    if job.kind != "real":
        return failed(job, reason, seconds)
    return TrialResult(job.scenario, job.trial, tampered(status, [reason]), seconds, job.kind)


def _not_begun(job: Job, why: str | None) -> TrialResult:
    """The result of a trial that never began: somebody stopped the run, and `why`; None where nobody did."""
    if why is not None:
        verdict = Verdict("error", "cancelled", why)
        return TrialResult(job.scenario, job.trial, verdict, seconds=0.0, kind=job.kind)
    return failed(job, "no worker could be started for the trial; its error stands above")
