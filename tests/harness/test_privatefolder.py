"""Private folders of trials go with them, also those of a run that was killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.hiding import make_hiding
from harness.privatefolder import KEPT, PRIVATE, clear_stale, hold, make_private_folder, private_folder
from proxy.spans import JSON
from tests.harness.runs import write_scenario

DEADLINE = 60.0


def test_a_folder_is_taken_away_once_nobody_holds_it(tmp_path: Path) -> None:
    made = make_private_folder(where=tmp_path)
    assert made.path.stat().st_mode & 0o777 == 0o700
    assert made.lock is not None
    (made.path / "context.json").write_text("secret")
    second = hold(made.path)
    assert second is not None
    os.close(made.lock)
    assert (clear_stale(tmp_path), made.path.exists()) == (0, True)
    os.close(second)
    assert (clear_stale(tmp_path), made.path.exists()) == (1, False)
    assert hold(made.path) is None


def test_nothing_else_is_taken_away(tmp_path: Path) -> None:
    kept = make_private_folder(keep=make_hiding({}, bytes(32)), where=tmp_path)
    kept.remove()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{PRIVATE}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PRIVATE}file").write_text("")
    (tmp_path / "wiretrap-other").mkdir()
    with private_folder(tmp_path) as used:
        assert clear_stale(tmp_path) == 0
        assert used.is_dir()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {kept.path.name, "elsewhere", f"{PRIVATE}link", f"{PRIVATE}file", "wiretrap-other"}
    assert kept.path.name.startswith(KEPT)
    assert clear_stale(tmp_path / "missing") == 0


@pytest.mark.parametrize("worker_too", [False, True])
def test_of_a_run_that_is_killed_no_private_folder_is_left(worker_too: bool, tmp_path: Path) -> None:
    """The worker takes it away where it outlives the run, else whoever starts next."""
    began = tmp_path / "began"
    holding: list[JSON] = [
        sys.executable,
        "-S",
        "-c",
        f"import os, signal; open({str(began)!r}, 'w').write(str(os.getpid())); signal.pause()",
    ]
    path = write_scenario(tmp_path, agent={"command": holding})
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = [sys.executable, "-P", "-m", "harness.cli", "run", str(path), "--out", str(tmp_path / "runs")]
    with subprocess.Popen(words, env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.DEVNULL) as run:
        wait(lambda: began.exists() and began.read_text() != "")
        assert [path.name.startswith(PRIVATE) for path in temporary.iterdir()] == [True]
        [worker] = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        if worker_too:
            os.kill(int(worker), signal.SIGKILL)
        run.kill()
    if worker_too:
        os.kill(int(began.read_text()), signal.SIGKILL)  # nobody is left who would end the agent
        assert len(list(temporary.iterdir())) == 1
        # The worker is no child of ours: its lock goes when it is gone, which may be a moment later.
        wait(lambda: clear_stale(temporary) == 1)
    wait(lambda: not any(temporary.iterdir()))


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)
