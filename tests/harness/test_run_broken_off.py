"""What is left of a run that Ctrl-C or SIGKILL broke off."""

import json
import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from time import monotonic
from xml.etree import ElementTree

import pytest

from harness.targets.proxied import wiretrap_command
from tests.harness.runs import behave, marked, write_scenario


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_a_whole_report_and_no_process_and_exits_130(tmp_path: Path, times: int) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    started = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    mark = {"TEST_MARK": str(tmp_path)}
    command = " ".join(behave("endless"))
    process = subprocess.Popen(
        [
            *wiretrap_command(),
            "run",
            str(write_scenario(tmp_path)),
            "--trials",
            "3",
            "--jobs",
            "2",
            "--command",
            command,
        ],
        cwd=tmp_path,
        env={**os.environ, **mark, "STARTED": str(fifo)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    poll = select.poll()
    poll.register(started, select.POLLIN)
    assert poll.poll(60_000), "no agent started"
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(started)
    assert process.returncode == 130, err
    assert marked(mark) == []
    assert "cancelled" in out
    assert "Go on with it: wiretrap run --resume " in out
    (folder,) = (tmp_path / "runs").iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert report["cancelled"] is True
    (scenario,) = report["scenarios"]
    assert [trial["status"] for trial in scenario["trials"]] == ["cancelled"] * 3
    assert ElementTree.parse(folder / "junit.xml").getroot().get("errors") == "1"
    assert json.loads((folder / "manifest.json").read_text())["ended_at"] is not None


def test_a_run_that_is_killed_takes_its_agents_with_it(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    started = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    mark = {"TEST_MARK": str(tmp_path)}
    process = subprocess.Popen(
        [*wiretrap_command(), "run", str(write_scenario(tmp_path)), "--command", " ".join(behave("endless"))],
        cwd=tmp_path,
        env={**os.environ, **mark, "STARTED": str(fifo)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    poll = select.poll()
    poll.register(started, select.POLLIN)
    assert poll.poll(60_000), "no agent started"
    os.close(started)
    left = [int(found.split()[0]) for found in marked(mark) if int(found.split()[0]) != process.pid]
    assert left
    process.kill()
    process.wait()
    for pid in left:
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            assert poll.poll(60_000), f"{pid} lives on"
            os.close(descriptor)
    # One that was being started when the run was killed was not among them.
    end = monotonic() + 60
    while still := marked(mark):
        assert monotonic() < end, still
        select.select([], [], [], 0.02)


def test_a_second_ctrl_c_leaves_no_private_folder(tmp_path: Path) -> None:
    fifo, private = tmp_path / "started", tmp_path / "private"
    os.mkfifo(fifo)
    private.mkdir()
    started = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    command = [*wiretrap_command(), "run", str(write_scenario(tmp_path)), "--command", " ".join(behave("endless"))]
    environment = {**os.environ, "STARTED": str(fifo), "TMPDIR": str(private)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    poll = select.poll()
    poll.register(started, select.POLLIN)
    assert poll.poll(60_000), "no agent started"
    assert list(private.iterdir())
    for _ in range(2):
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    os.close(started)
    assert list(private.iterdir()) == []
