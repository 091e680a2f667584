"""Every way a client ends a server, with and without the proxy: what is left, what was signalled, and the exit code.

Each case runs directly and through the proxy, side by side; the proxied one must look no different (wire rule 11).
"""

import os
import pty
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

SERVER = str(Path(__file__).with_name("closing_server.py"))
WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
DEADLINE = 60.0
Way = Callable[[subprocess.Popen[bytes]], None]
KINDS = ("good", "wrapped", "slow", "counting", "stubborn")


@dataclass(frozen=True, slots=True)
class Ending:
    """What is seen of one ending: the exit code, the server's log, and how many processes are left."""

    code: int | None
    log: tuple[str, ...]
    left: int


def marked(mark: str) -> list[int]:
    """The live processes with this mark in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if mark.encode() in Path(f"/proc/{entry}/environ").read_bytes():
                    found.append(int(entry))
            except OSError:
                continue
    return found


def settle(mark: str, seconds: float) -> int:
    """How many marked processes are left once their number has not changed for a while."""
    end = monotonic() + seconds
    while (left := len(marked(mark))) and monotonic() < end:
        select.select([], [], [], 0.15)  # a look at all processes takes 10 ms of work, and ten cases look at once
    return left


def wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def only_close(process: subprocess.Popen[bytes]) -> None:
    close_input(process)
    wait(process, 3)


def as_the_python_sdk(process: subprocess.Popen[bytes]) -> None:
    """mcp.client.stdio: close, 2 s, SIGTERM to the group, 2 s, SIGKILL to the group."""
    close_input(process)
    if wait(process, 2):
        return
    os.killpg(process.pid, signal.SIGTERM)
    if not wait(process, 2):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(DEADLINE)


def as_the_typescript_sdk(process: subprocess.Popen[bytes]) -> None:
    """The same to the one pid."""
    close_input(process)
    if wait(process, 2):
        return
    process.terminate()
    if not wait(process, 2):
        process.kill()
        process.wait(DEADLINE)


def with_signal(number: signal.Signals, *, group: bool) -> Way:
    def end(process: subprocess.Popen[bytes]) -> None:
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        wait(process, 3)

    return end


def run(
    kind: str,
    end: Callable[[subprocess.Popen[bytes]], None],
    folder: Path,
    *,
    leads: bool,
    as_good_as: Callable[[Ending], bool] | None = None,
) -> Ending:
    """How it ends; through the proxy where `as_good_as` is given, which a busy machine gets more time to come true."""
    mark = uuid.uuid4().hex
    log = folder / mark
    command = [sys.executable, "-S", SERVER, str(log), "good" if kind == "wrapped" else kind]
    if kind == "wrapped":
        command = ["sh", "-c", '"$@"; exit $?', "sh", *command]
    if as_good_as is not None:
        command = [WIRETRAP, "proxy", "stdio", "--quiet", "--server", "x", "--spans", str(folder / "spans"), *command]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "CASE": mark},
        start_new_session=leads,
    )
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], DEADLINE)
        assert ready
        os.read(process.stdout.fileno(), 64)
        end(process)
        left = settle(mark, 2.5)
        seen = Ending(process.poll(), tuple(log.read_text().split("\n")), left)
        until = monotonic() + DEADLINE
        while as_good_as is not None and not as_good_as(seen) and monotonic() < until:
            select.select([], [], [], 0.1)
            seen = Ending(process.poll(), tuple(log.read_text().split("\n")), len(marked(mark)))
        return seen
    finally:
        for pid in marked(mark):
            with suppress(ProcessLookupError):  # it may end by itself meanwhile
                os.kill(pid, signal.SIGKILL)
        process.wait(DEADLINE)
        process.stdout.close()
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()


WAYS: dict[str, tuple[Way, bool]] = {
    "closing its input": (only_close, True),
    "as the Python SDK": (as_the_python_sdk, True),
    "as the TypeScript SDK": (as_the_typescript_sdk, False),
    "SIGTERM to the group": (with_signal(signal.SIGTERM, group=True), True),
    "SIGINT to the group": (with_signal(signal.SIGINT, group=True), True),
    "SIGHUP to the group": (with_signal(signal.SIGHUP, group=True), True),
    "SIGKILL to the group": (with_signal(signal.SIGKILL, group=True), True),
    "SIGTERM to the pid": (with_signal(signal.SIGTERM, group=False), False),
    "SIGINT to the pid": (with_signal(signal.SIGINT, group=False), False),
    "SIGHUP to the pid": (with_signal(signal.SIGHUP, group=False), False),
    "SIGKILL to the pid": (with_signal(signal.SIGKILL, group=False), False),
    "SIGTERM to the pid of a leader": (with_signal(signal.SIGTERM, group=False), True),
}


def differences(way: str, kind: str, direct: Ending, proxied: Ending) -> Iterator[str]:
    """In what the proxied ending is worse."""
    # Where the wrapper alone dies its server lives on directly; ours, without a client, is ended.
    alone = kind == "wrapped" and way.endswith(("to the pid", "to the pid of a leader"))
    if not alone and proxied.log != direct.log:
        yield "the server was told something else"
    if proxied.code != direct.code:
        yield "the client saw another exit code"
    # Who lives on, lives on behind its proxy; the proxy's own two processes are no leftovers then.
    if proxied.left > direct.left + (2 if direct.code is None else 0):
        yield "more processes are left"
    if way == "as the Python SDK" and proxied.left:
        yield "processes are left"


@pytest.mark.parametrize("way", WAYS)
def test_a_server_behind_the_proxy_ends_as_it_does_without(way: str, tmp_path: Path) -> None:
    end, leads = WAYS[way]

    def both(kind: str) -> tuple[Ending, Ending]:
        direct = pool.submit(run, kind, end, tmp_path, leads=leads)

        def as_good_as(seen: Ending) -> bool:
            return not list(differences(way, kind, direct.result(DEADLINE), seen))

        return run(kind, end, tmp_path, leads=leads, as_good_as=as_good_as), direct.result(DEADLINE)

    left: tuple[str, ...] = KINDS
    with ThreadPoolExecutor(2 * len(KINDS)) as pool:
        # A client's own seconds may be over on a busy machine before its server has come to it, with the proxy or
        # without. What is no chance is so again.
        for last in (False, False, True):
            seen = dict(zip(left, pool.map(both, left), strict=True))
            left = tuple(kind for kind in left if list(differences(way, kind, seen[kind][1], seen[kind][0])))
            assert not last or not left, {kind: seen[kind] for kind in left}
            if not left:
                break


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_from_a_terminal_reaches_the_server_once(kind: str, tmp_path: Path) -> None:
    seen = []
    for proxied in (False, True):
        log = tmp_path / f"log-{proxied}"
        mark = uuid.uuid4().hex
        command = [sys.executable, "-S", SERVER, str(log), "good" if kind == "wrapped" else kind]
        if kind == "wrapped":
            command = ["sh", "-c", '"$@"; exit $?', "sh", *command]
        if proxied:
            command = [WIRETRAP, "proxy", "stdio", "--server", "x", "--spans", str(tmp_path / "spans"), *command]
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(command[0] if proxied else "/usr/bin/env", command if proxied else ["env", *command],
                      {**os.environ, "CASE": mark})  # fmt: skip
        try:
            text = b""
            while b"ready" not in text:
                ready, _, _ = select.select([terminal], [], [], DEADLINE)
                assert ready, text
                text += os.read(terminal, 4096)
            os.write(terminal, b"\x03")
            end = monotonic() + DEADLINE
            while not (log.exists() and "signal 2" in log.read_text()):
                assert monotonic() < end
                select.select([], [], [], 0.02)
            if kind in ("counting", "stubborn"):
                os.write(terminal, b"\x03")
                while log.read_text().count("signal 2") < 2:
                    assert monotonic() < end
                    select.select([], [], [], 0.02)
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            told = log.read_text()
            if kind in ("counting", "stubborn"):
                # Whom the kill leaves behind, the terminal tells, sooner or later, that it hangs up.
                told = told.replace("signal 1\n", "")
            seen.append(told)
            assert settle(mark, DEADLINE) == 0
        finally:
            for left in marked(mark):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            os.close(terminal)
    assert seen[0] == seen[1]
