"""Live approvals end to end: an agent's process tree, an operator's desk on a terminal, and the server's counter."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from proxy.spanread import read_spans
from proxy.vocabulary import EVENT_TYPE

HERE = Path(__file__).parent
WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
DEADLINE = 60.0


class Terminal:
    """An operator's desk on a terminal of its own."""

    def __init__(self, folder: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [WIRETRAP, "approve", "listen", folder], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.text = ""

    def until(self, word: str) -> str:
        """The rest of the line behind a word that has not been shown before."""
        end = time.monotonic() + DEADLINE
        while True:
            before, found, rest = self.text.partition(word)
            line, ended, after = rest.partition("\n")
            if found and ended:
                self.text = after
                return line.strip()
            ready, _, _ = select.select([self.master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"no {word!r} in {before!r}"
            self.text += os.read(self.master, 4096).decode()

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            assert self.process.wait(DEADLINE) == 130
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.master)


def answer(verdict: str, folder: str, name: str, code: str) -> subprocess.CompletedProcess[str]:
    command = [WIRETRAP, "approve", verdict, folder, name]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=False, timeout=DEADLINE)


def test_an_operator_lets_one_call_through_and_the_agent_cannot(tmp_path: Path) -> None:
    desk, counter, policy = str(tmp_path / "desk"), tmp_path / "calls", tmp_path / "policy.yaml"
    policy.write_text("rules:\n- approve: mcp/bank/pay\n  wait: 10m\n")
    terminal = Terminal(desk)
    proxy = ["proxy", "stdio", "--server", "bank", "--policy", str(policy), "--approvals", desk]
    proxy += ["--spans", str(tmp_path / "spans"), "--quiet", "--"]
    server = [sys.executable, str(HERE / "counting_server.py"), str(counter)]
    agent = subprocess.Popen(
        [sys.executable, str(HERE / "approving_agent.py"), WIRETRAP, desk, *proxy, *server],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert agent.stdin is not None
    assert agent.stdout is not None

    def tell(*words: str) -> None:
        assert agent.stdin is not None
        agent.stdin.write(" ".join(words) + "\n")
        agent.stdin.flush()

    try:
        terminal.until("calls that wait")
        tell("call", "1", "5")
        first = terminal.until("waiting")
        assert terminal.until("arguments") == '{"amount": 5}'
        code = terminal.until("code")
        tell("grant", first, code)
        failed, said = json.loads(agent.stdout.readline())
        assert failed
        assert "cannot answer" in said
        assert "not the operator" in terminal.until("refused  ")
        assert not counter.exists()
        assert answer("grant", desk, first, "wrong").returncode == 1
        assert answer("grant", desk, first, code).returncode == 0
        tell("answer")
        assert "paid" in agent.stdout.readline()
        tell("call", "2", "6")
        second = terminal.until("waiting")
        code = terminal.until("code")
        assert answer("deny", desk, second, code).returncode == 0
        tell("answer")
        assert "the operator denied it" in agent.stdout.readline()
        assert answer("grant", desk, second, code).returncode == 1
        tell("call", "3", "7")
        third = terminal.until("waiting")
        agent.stdin.close()
        assert terminal.until("over") == third
        assert agent.wait(DEADLINE) == 0
    finally:
        agent.kill()
        agent.wait()
        agent.stdout.close()
        terminal.close()
    assert counter.read_text() == '{"amount": 5}\n'
    spans = list(read_spans([str(tmp_path / "spans")], print))
    assert len([span for span in spans if span.attributes.get(EVENT_TYPE) == "approval"]) == 1
    assert code not in "".join(file.read_text() for file in (tmp_path / "spans").iterdir())
