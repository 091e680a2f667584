"""The proxies that listen, where the server or the agent runs elsewhere: a process each, before the agent and after it.

Refuses to know who talks through them.
"""

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from harness.targets.deadline import Deadline, TimeUpError
from harness.targets.proxied import PreparationError, Prepared, Upstream

STARTING = 30.0
"""Seconds that a proxy has to listen."""
ENDING = 5.0
"""Seconds that it has to end, and to record that, before it is killed; it closes what is open within one."""


@dataclass(slots=True)
class _Front:
    upstream: Upstream
    process: subprocess.Popen[bytes]

    def url(self, deadline: Deadline) -> str:
        """Where it listens. Raises PreparationError where it ended instead, or says nothing in time."""
        assert self.process.stdout is not None
        line = b""
        why = "it ended; what it said is in agent.err"
        try:
            while not line.endswith(b"\n"):
                deadline.wait({self.process.stdout.fileno(): select.POLLIN})
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                if not chunk:
                    break
                line += chunk
        except TimeUpError:
            why = f"it did not listen within {STARTING:.0f} s"
        told = json.loads(line) if line.endswith(b"\n") else None
        if not isinstance(told, dict) or not isinstance(told.get("url"), str):
            raise PreparationError(f"server {self.upstream.id}: its proxy did not start: {why}")
        return str(told["url"])

    def end(self, deadline: Deadline) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(deadline.left())
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def fronts(prepared: Prepared, errors: Path, cancel: int | None) -> Iterator[Prepared]:
    """Start the proxies that listen; what is given back has the URLs for the agent.

    Raises PreparationError, and TrialCancelledError. `errors` gets what the proxies say.
    """
    started: list[_Front] = []
    try:
        for upstream in prepared.upstreams:
            if upstream.listens:
                started.append(_start(upstream, errors))
        deadline = Deadline.after(STARTING, cancel)
        urls = {front.upstream.id: front.url(deadline) for front in started}
        yield replace(
            prepared,
            upstreams=tuple(replace(upstream, front=urls.get(upstream.id, "")) for upstream in prepared.upstreams),
        )
    finally:
        for front in started:
            front.process.send_signal(signal.SIGTERM)
        deadline = Deadline.after(ENDING)
        for front in started:
            front.end(deadline)


def _start(upstream: Upstream, errors: Path) -> _Front:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WIRETRAP_")}
    try:
        with errors.open("ab") as stderr:
            process = subprocess.Popen(
                upstream.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**environment, **upstream.environment},
                bufsize=0,
                # Ctrl-C on the terminal is for whoever runs the trial, and ends this one last.
                start_new_session=True,
            )
    except OSError as error:
        raise PreparationError(f"server {upstream.id}: its proxy cannot be started: {error.strerror}") from None
    return _Front(upstream, process)
