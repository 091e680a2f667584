"""The end of a bridge's children, whether they want to end or not."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from proxy.child import Child, StartError
from proxy.nursery import Nursery, check_command

OBEDIENT = "import sys; print('ready', flush=True); sys.stdin.read()"
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
while True: time.sleep(60)
"""


class Started:
    """Starts children whose pipes the test holds."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment: Mapping[str, str] = {}

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        self.environment = environment
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return Child(process.pid, process.stdin.fileno(), process.stdout.fileno())

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


@pytest.mark.parametrize("script", [OBEDIENT, STUBBORN], ids=["at the end of its input", "only when killed"])
@pytest.mark.parametrize("all_at_once", [False, True], ids=["one", "all"])
def test_a_child_ends(script: str, all_at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.nursery.GRACE", 0.1)
    monkeypatch.setattr("proxy.nursery.STOP_GRACE", 0.1)
    monkeypatch.setenv("WIRETRAP_OTHER", "x")
    started = Started()
    nursery = Nursery([sys.executable, "-c", script], started.start, adopts=False)
    try:
        child = nursery.start("c1")
        ours = {name: value for name, value in started.environment.items() if name.startswith("WIRETRAP_")}
        assert ours == {"WIRETRAP_CONNECTION": "c1"}
        (process,) = started.processes
        if not all_at_once:
            assert process.stdin is not None
            process.stdin.close()
        asyncio.run(nursery.end_all() if all_at_once else nursery.end(child.pid))
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)
    finally:
        started.close()


def test_a_command_that_cannot_be_started_has_the_code_of_a_shell(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for name, code in ((str(plain), 126), (str(tmp_path / "nothing"), 127), ("no-such-program-here", 127)):
        with pytest.raises(StartError) as caught:
            check_command([name])
        assert caught.value.code == code
    check_command([sys.executable])
