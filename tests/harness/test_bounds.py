from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.run import command as run
from harness.scenario import ScenarioError, load_scenario
from harness.scenariofile import MOST_TRIALS
from harness.sweepfile import SweepFileError, load_sweep
from proxy.spans import JSON
from tests.harness.runs import write_scenario

FACT: dict[str, JSON] = {"id": "a", "value": 1, "known": {"server": "echo", "tool": "echo", "path": "$.a"}}


def test_more_trials_than_anybody_keeps_are_refused_wherever_they_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"trials: expected at most 10,000, not "):
        load_scenario(write_scenario(tmp_path, trials=99999999999999999999), None)
    assert load_scenario(write_scenario(tmp_path, trials=MOST_TRIALS), None).trials == MOST_TRIALS
    shown = CliRunner().invoke(run, [str(tmp_path), "--trials", "100000000"])
    assert (shown.exit_code, "'--trials'" in shown.stderr) == (2, True)
    sweep = tmp_path / "s.yaml"
    sweep.write_text("tasks: [a.yaml]\nagents: {a: b.yaml}\ntrials: 10001\n")
    with pytest.raises(SweepFileError, match=r"trials: expected at most 10,000"):
        load_sweep(sweep)


@pytest.mark.parametrize(
    "path", ["$..[", "$.", "$..a", "$[", "$[-1]", "$['a']", "$a", "$.a[*]", "a", "$.a\n[", "$[1]b"]
)
def test_a_path_of_a_fact_that_nothing_can_stand_at_is_refused(tmp_path: Path, path: str) -> None:
    fact = {**FACT, "known": {"server": "echo", "tool": "echo", "path": path}}
    with pytest.raises(ScenarioError, match=r"facts\[0\].known.path: expected a path such as"):
        load_scenario(write_scenario(tmp_path, facts=[fact]), None)


@pytest.mark.parametrize("path", ["$", "$.a", "$.a.b[0]", "$[0][1].c d"])
def test_a_path_of_names_and_places_is_taken(tmp_path: Path, path: str) -> None:
    fact = {**FACT, "known": {"server": "echo", "tool": "echo", "path": path}}
    assert load_scenario(write_scenario(tmp_path, facts=[fact]), None).facts[0].known.path == path


def test_the_pattern_of_a_secret_is_looked_at_when_the_file_is_read(tmp_path: Path) -> None:
    file = write_scenario(
        tmp_path,
        expected={"secrets": [{"name": "a", "pattern": "("}]},
        assertions=[{"type": "no_secret_disclosure"}, {"type": "tool_called", "tool": "mcp/echo/echo"}],
    )
    with pytest.raises(ScenarioError, match=r"expected.secrets\[0\].pattern: .*is not a regular expression"):
        load_scenario(file, None)
