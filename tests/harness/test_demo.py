from pathlib import Path

import pytest

from harness import demo
from tests.harness.runs import SCENARIOS


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SCENARIOS.parent)


def test_every_file_of_the_demo_is_there_and_both_kinds_of_verdict_are_expected() -> None:
    for act in demo.ACTS:
        assert (demo.SCENARIOS / act.scenario).is_file()
        assert (demo.SCENARIOS / act.agent).is_file()
    assert {act.expected for act in demo.ACTS} == {"pass", "fail"}


def test_the_denied_call_is_attempted_and_blocked_and_an_act_that_ends_otherwise_does_not_hold(tmp_path: Path) -> None:
    denied = demo.ACTS[-1]
    run = demo.play(denied, tmp_path)
    assert demo.holds(denied, run)
    assert not demo.holds(demo.ACTS[0], run)
