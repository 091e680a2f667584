import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness.processes import Process, descendants, end_descendants, find_process

DAEMON = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
parent = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == parent:  # it is seen once those above it are gone
    os.sched_yield()
sys.stdout.write(f"{os.getpid()}\\n")
sys.stdout.flush()
os.closerange(0, 3)
import signal
signal.pause()
"""
STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write("ready\\n")
sys.stdout.flush()
while True:
    signal.pause()
"""
REAPER = """
import sys, os, subprocess
from harness.processes import become_subreaper, end_descendants
become_subreaper()
found = subprocess.run([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, check=True)
ended = end_descendants(os.getpid())
assert ended == (int(found.stdout),), (ended, found.stdout)
"""


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def spare() -> Iterator[tuple[Process, ...]]:
    before = descendants(os.getpid())
    yield before
    end_descendants(os.getpid(), spare=before, grace=0)


def start(program: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def test_a_daemon_in_a_session_of_its_own_is_found_and_ended_by_a_subreaper() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", REAPER, DAEMON], timeout=60, check=False)
    assert done.returncode == 0


def test_a_process_that_ignores_sigterm_is_killed(spare: tuple[Process, ...]) -> None:
    process = start(STUBBORN)
    assert end_descendants(os.getpid(), spare=spare, grace=0.1) == (process.pid,)
    assert is_gone(process.pid)
    process.wait()


def test_what_is_spared_lives_on_with_all_that_is_below_it(spare: tuple[Process, ...]) -> None:
    process = start(STUBBORN)
    assert end_descendants(os.getpid(), spare=(*spare, find_process(process.pid)), grace=0) == ()
    assert not is_gone(process.pid)
    process.kill()
    process.wait()


def test_nothing_is_sent_to_a_sheltered_process_that_ends_in_time(spare: tuple[Process, ...]) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert end_descendants(os.getpid(), spare=spare, patience=60, shelter=lambda _: True) == ()
    process.wait()


def test_what_is_not_sheltered_is_ended_first_and_that_may_end_the_sheltered(spare: tuple[Process, ...]) -> None:
    read, write = os.pipe()
    waiting = subprocess.Popen([sys.executable, "-c", "input()"], stdin=read, stderr=subprocess.DEVNULL)
    program = "import signal; print(1, flush=True); signal.pause()"
    holding = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, pass_fds=[write])
    assert holding.stdout is not None
    holding.stdout.readline()
    holding.stdout.close()
    os.close(read)
    os.close(write)
    ended = end_descendants(os.getpid(), spare=spare, patience=60, shelter=lambda one: one.pid == waiting.pid)
    assert ended == (holding.pid,)
    waiting.wait()
    holding.wait()


def test_nobody_is_waited_for_where_nothing_is_sheltered(spare: tuple[Process, ...]) -> None:
    process = start("import signal; print('ready', flush=True); signal.pause()")
    ended = end_descendants(os.getpid(), spare=spare, patience=60)
    assert ended == (process.pid,)
    process.wait()


def test_a_process_with_brackets_and_blanks_in_its_name_is_read(spare: tuple[Process, ...]) -> None:
    program = (
        "import ctypes, signal; ctypes.CDLL(None).prctl(15, b') S 1 (x', 0, 0, 0); print(1, flush=True); signal.pause()"
    )
    process = start(program)
    assert find_process(process.pid).parent == os.getpid()
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_private_process_cannot_be_read_by_a_child_without_privileges() -> None:
    program = (
        "import os\n"
        "from harness.processes import keep_private\n"
        "keep_private()\n"
        "read, write = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    if os.getuid() == 0:\n"
        "        os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "    try:\n"
        "        os.open(f'/proc/{os.getppid()}/fd/{write}', os.O_WRONLY)\n"
        "    except PermissionError:\n"
        "        os._exit(7)\n"
        "    os._exit(0)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 7


def test_a_private_process_still_finds_and_ends_what_is_below_it() -> None:
    program = (
        "import os, subprocess, sys\n"
        "from harness.processes import command_line, descendants, end_descendants, keep_private\n"
        "keep_private()\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "assert [process.pid for process in descendants(os.getpid())] == [child.pid]\n"
        "assert end_descendants(os.getpid()) == (child.pid,)\n"
        "assert descendants(os.getpid()) == ()\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


CHILDLESS = """
import os, subprocess, sys, threading
from harness.processes import descendants
listdir = os.listdir
os.listdir = None
assert descendants(os.getpid()) == ()
os.listdir = listdir
child = threading.Thread(target=lambda: started.append(subprocess.Popen(["true"], stdout=subprocess.PIPE)))
started = []
child.start()
child.join()
started[0].stdout.read()
assert [process.pid for process in descendants(os.getpid())] == [started[0].pid]
started[0].wait()
os.listdir = None
assert descendants(os.getpid()) == ()
"""


def test_who_has_no_child_is_told_so_without_a_look_at_all_processes() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", CHILDLESS], timeout=60, check=False, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
