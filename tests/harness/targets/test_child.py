import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.targets.child import ChildChannel, StartError, start_child
from harness.targets.client import ServerEndedError
from harness.targets.deadline import Deadline, TimeUpError, TrialCancelledError

ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"
Start = Callable[..., ChildChannel]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    channels: list[ChildChannel] = []

    def begin(program: str, deadline: Deadline | None = None) -> ChildChannel:
        command = [sys.executable, "-c", program]
        errors = tmp_path / "agent.err"
        channel = start_child("echo", command, os.environ, errors, deadline or Deadline.after(30))
        channels.append(channel)
        return channel

    yield begin
    for channel in channels:
        channel.abandon()
        with suppress(ProcessLookupError):
            channel.process.kill()
        channel.process.wait()


def test_lines_of_any_length_go_both_ways_without_either_side_waiting_for_the_other(start: Start) -> None:
    channel = start(ECHO)
    long = b"x" * 3_000_000 + b"\n"
    channel.send(long)
    channel.send(b"short\n")
    assert channel.receive() + b"\n" == long
    assert channel.receive() == b"short"
    channel.close()
    assert channel.process.returncode == 0


def test_the_end_of_the_child_is_server_ended(start: Start) -> None:
    channel = start("print('one')")
    assert channel.receive() == b"one"
    with pytest.raises(ServerEndedError, match="echo"):
        channel.receive()


def test_writing_to_a_child_that_has_ended_is_server_ended(start: Start) -> None:
    channel = start("import os; os.close(0); print('closed', flush=True); import signal; signal.pause()")
    assert channel.receive() == b"closed"
    with pytest.raises(ServerEndedError):
        channel.send(b"x" * 1_000_000 + b"\n")


def test_a_silent_child_runs_into_the_deadline(start: Start) -> None:
    channel = start("input()", Deadline.after(0.05))
    with pytest.raises(TimeUpError):
        channel.receive()


def test_a_cancelled_trial_stops_waiting_at_once(start: Start) -> None:
    read, write = os.pipe()
    os.write(write, b"x")
    channel = start("input()", Deadline.after(30, read))
    with pytest.raises(TrialCancelledError):
        channel.receive()
    os.close(read)
    os.close(write)


def test_what_a_child_says_on_stderr_is_kept(start: Start, tmp_path: Path) -> None:
    start("import sys; sys.stderr.write('oh no')").close()
    assert (tmp_path / "agent.err").read_text() == "oh no"


def test_a_command_that_is_not_there_is_a_start_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="no-such-program"):
        start_child("crm", ["no-such-program"], os.environ, tmp_path / "err", Deadline.after(1))
