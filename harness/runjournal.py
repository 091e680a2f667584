"""The results of a run as they come, a line each in `results.ndjson`, so that a killed run can go on; and its locks.

Refuses to know what a result says. A line is one write of the runner's: what is torn is the last one, and never was.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from harness.results import TrialResult
from harness.runfolder import FILE_MODE, RESULTS, RunFolderError, replace
from proxy.plainfile import open_plain

PATIENCE = 60.0
"""Seconds that the workers of a run that was killed get to end: they do that by themselves, and take about 15."""
PACE = 0.05
"""Seconds between two looks."""
_RESULT: TypeAdapter[TrialResult] = TypeAdapter(TrialResult)


class RunJournal:
    """`results.ndjson` of one run folder, open for more lines. `problem` says why one could not be written, if so."""

    def __init__(self, folder: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(folder / RESULTS, flags, FILE_MODE)
        self.problem: OSError | None = None

    def add(self, result: TrialResult) -> None:
        """Write a result down. Of two of one trial the later one counts; a cancelled trial has none."""
        if result.verdict.status == "cancelled" or self.problem is not None:
            return
        # In ASCII: lone surrogates survive as escapes.
        line = json.dumps(asdict(result)).encode() + b"\n"
        try:
            if os.write(self._descriptor, line) != len(line):
                self.problem = OSError(f"only a part of {len(line)} bytes could be written")
        except OSError as error:
            self.problem = error

    def close(self) -> None:
        """No more results come."""
        os.close(self._descriptor)


def read_results(folder: Path) -> dict[tuple[str, int], TrialResult]:
    """The results that a run came to, by scenario and trial; a torn last line is cut off. Raises RunFolderError."""
    path = folder / RESULTS
    try:
        with open_plain(path) as file:
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            os.truncate(path, len(whole))
        found = [_RESULT.validate_python(json.loads(line)) for line in whole.splitlines()]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from error
    return {(result.scenario, result.trial): result for result in found}


def keep_results(folder: Path, results: Iterable[TrialResult]) -> None:
    """Let the file have these results alone: those of what has changed since would else be taken for its own."""
    replace(folder / RESULTS, "".join(f"{json.dumps(asdict(result))}\n" for result in results))


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the run folder for as long as the run is under way. Raises RunFolderError where somebody has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderError(f"{folder}: the run is under way; wait until it has ended") from None
        yield
    finally:
        os.close(descriptor)


def hold_as_worker(folder: Path) -> bool:
    """Hold the run folder as a worker of it until this process ends; false where somebody waits for that to end."""
    try:
        # Kept open on purpose: the lock goes with the process, however that ends.
        descriptor = os.open(folder / RESULTS, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # An agent took the file away. The trial says what it says all the same; only a resume would not wait for it.
        return True
    return True


def await_workers(folder: Path, patience: float = PATIENCE) -> None:
    """Wait until no worker of a run that was killed is left. Raises RunFolderError where one stays."""
    try:
        with open_plain(folder / RESULTS) as file:
            end = time.monotonic() + patience
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise RunFolderError(f"{folder}: a worker of the run is still there; end it first") from None
                    time.sleep(PACE)
                else:
                    return
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunFolderError(f"{folder / RESULTS} cannot be read: {error.strerror}") from error
