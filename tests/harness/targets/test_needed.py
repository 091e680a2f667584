"""What is said where the interpreter of an agent lacks what its framework wants."""

import sys
from pathlib import Path

import pytest

from harness.targetfile import Called, Framework
from harness.targets.needed import LANGCHAIN, MODULES, lacking
from tests.harness.runs import ROOT, run, write_scenario
from tests.harness.targets.test_asked import agent_file


def test_an_agent_of_langchain_without_an_interpreter_of_its_own_says_how_to_make_one(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, servers=None, assertions=[{"type": "no_denied_tool_call"}])
    (tmp_path / "mine.py").write_text("def build(tools): ...")
    ran = run([scenario], tmp_path, agent=agent_file(tmp_path, langchain="mine:build"))
    [trial] = ran.result.trials
    assert (trial.verdict.status, ran.result.exit_code) == ("infra_error", 3)
    assert LANGCHAIN in trial.verdict.reason
    assert f"langchain_mcp_adapters, which {sys.executable} does not have" in trial.verdict.reason
    assert LANGCHAIN in (ROOT / "docs" / "targets.md").read_text()


@pytest.mark.parametrize("framework", MODULES)
def test_another_interpreter_is_asked_itself(framework: Framework, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o700)
    said = lacking(Called(framework, "mine:build", str(other)))
    if framework == "python":
        assert said is None
    else:
        assert said is not None
        assert all(f"{module}" in said for module in MODULES[framework])
        assert ("wiretrap[" in said) == (framework != "langchain")


def test_an_interpreter_that_is_not_there_is_for_whoever_starts_the_agent(tmp_path: Path) -> None:
    assert lacking(Called("langchain", "mine:build", str(tmp_path / "none"))) is None
