"""The limits of a scenario and Ctrl-C, with each kind of target that is asked or called."""

import json
import os
import signal
import subprocess
from pathlib import Path
from time import monotonic

import pytest

from harness.targets.proxied import wiretrap_command
from harness.tracefile import load_trace
from tests.harness.runs import marked, run
from tests.harness.targets.boxes import box
from tests.harness.targets.test_asked_ends import DEADLINE, LIMIT, MARK, TARGETS, Ended, Targets, at_its_limit, working


def test_at_a_limit_each_target_is_let_go_and_what_was_seen_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets, mark = Targets(), {MARK: str(tmp_path)}
    monkeypatch.setenv(MARK, str(tmp_path))
    with box(targets.handle) as url:
        paths = [working(tmp_path, url, "once", target, seconds=2 * LIMIT) for target in TARGETS]
        paths += [working(tmp_path, url, "again", target, seconds=DEADLINE, tool_calls=2) for target in TARGETS]
        ended = Ended(run(paths, tmp_path, jobs=2), targets, mark)
        for target in TARGETS:
            at_its_limit(ended, "once", target)
            at_its_limit(ended, "again", target)


def test_ctrl_c_ends_targets_of_every_kind_and_their_reports_are_whole(tmp_path: Path) -> None:
    targets, mark = Targets(), {MARK: str(tmp_path)}
    with box(targets.handle) as url:
        paths = [working(tmp_path, url, "once", target) for target in TARGETS]
        command = [*wiretrap_command(), "run", *map(str, paths), "--jobs", "3", "--out", str(tmp_path / "runs")]
        process = subprocess.Popen(command, env={**os.environ, **mark}, stdout=subprocess.DEVNULL)
        try:
            until = monotonic() + DEADLINE
            assert all(event.wait(until - monotonic()) for event in targets.called.values()), targets.called
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE) == 130
        finally:
            process.kill()
            process.wait()
        assert all(targets.gone[name].wait(DEADLINE) for name in ("once_http", "once_chat", "silence"))
    assert marked(mark) == []
    [folder] = (tmp_path / "runs").iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert [trial["status"] for one in report["scenarios"] for trial in one["trials"]] == ["cancelled"] * 3
    for target in TARGETS:
        [call] = load_trace(folder / f"once_{target}" / "1" / "trace.json").tool_calls
        assert (call.name, call.outcome) == ("mcp/echo/echo", "ok")
