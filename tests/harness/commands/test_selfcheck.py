"""A self-check that is told to end leaves none of its databases behind."""

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import selfchecking
from harness.commands import selfcheck
from harness.results import TrialResult
from harness.trial import TrialPlan, run_trial
from tests.harness.runs import SCENARIOS

SCENARIO = str(SCENARIOS / "support" / "customer_escalation.yaml")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_words_and_its_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    seen: list[list[Path]] = []

    def signalled(plan: TrialPlan) -> TrialResult:
        seen.append(list(tmp_path.iterdir()))
        os.kill(os.getpid(), number)
        return run_trial(plan)

    monkeypatch.setattr(selfchecking, "MEMORY", tmp_path)
    monkeypatch.setattr(selfchecking, "run_trial", signalled)
    before = signal.getsignal(number)
    shown = CliRunner().invoke(selfcheck.command, [SCENARIO])
    assert (shown.exit_code, len(seen), len(seen[0])) == (130, 1, 1)
    assert shown.output == "wiretrap: stopped after 0 of 1 scenarios\n"
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) is before


def test_the_second_signal_ends_what_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def signalled(_plan: TrialPlan) -> TrialResult:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt as error:
            raise BaseExceptionGroup("of what was awaited", [error]) from None
        raise AssertionError("the signal did nothing")

    monkeypatch.setattr(selfchecking, "MEMORY", tmp_path)
    monkeypatch.setattr(selfchecking, "run_trial", signalled)
    shown = CliRunner().invoke(selfcheck.command, [SCENARIO])
    assert (shown.exit_code, shown.output) == (130, "wiretrap: stopped after 0 of 1 scenarios\n")
    assert list(tmp_path.iterdir()) == []
