"""A self-check that is told to end leaves none of its databases behind."""

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import selfchecking
from harness.commands import selfcheck
from harness.trial import TrialPlan, run_trial
from tests.harness.runs import SCENARIOS

SCENARIO = str(SCENARIOS / "support" / "customer_escalation.yaml")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_as_ctrl_c_does_and_its_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    seen: list[list[Path]] = []

    def signalled(plan: TrialPlan) -> object:
        run_trial(plan)
        seen.append(list(tmp_path.iterdir()))
        os.kill(os.getpid(), number)
        raise AssertionError("the signal did nothing")

    monkeypatch.setattr(selfchecking, "MEMORY", tmp_path)
    monkeypatch.setattr(selfchecking, "run_trial", signalled)
    before = signal.getsignal(number)
    shown = CliRunner().invoke(selfcheck.command, [SCENARIO])
    assert (shown.exit_code, len(seen), len(seen[0])) == (1, 1, 1)
    assert "Aborted" in shown.output
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) is before
