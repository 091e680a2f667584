"""What an agent file names and is not there is found before anything runs, and never blamed on the agent."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.agentfile import CommandAgent
from harness.agentthere import not_there
from harness.commands.run import command as run_command
from harness.commands.validate import command as validate
from harness.targetfile import Called
from proxy.spans import JSON
from tests.harness.runs import run, write_scenario

MODULE = """
import sys
from os.path import join as joined
def plain(task): ...
async def later(task): ...
class Made:
    def one(self, task): ...
if sys.argv:
    chosen = plain
else:
    from json import *
"""


def said(agent: Called | CommandAgent, folder: Path) -> str:
    found = not_there(agent, folder)
    return "" if found is None else found[1]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("mine:plain", ""),
        ("mine:later", ""),
        ("mine:Made.one", ""),
        ("mine:joined", ""),
        ("pack.inner:f", ""),
        ("pack.other:f", ""),
        ("json:loads", ""),
        ("nomod:f", "there is no module 'nomod'"),
        ("nomod.deep:f", "there is no module 'nomod'"),
        ("strict:nofunc", "strict.py has no 'nofunc'; write MODULE:FUNCTION"),
        ("mine:nofunc", ""),
        ("broken:f", ""),
    ],
)
def test_a_function_is_looked_for_without_running_its_module(function: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "strict.py").write_text("raise SystemExit\ndef answer(task): ...\n")
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "inner.py").write_text("def f(task): ...")
    found = said(Called("python", function, path=tmp_path / "agent.yaml"), tmp_path)
    assert found.startswith(says) or found.endswith(says)
    assert bool(found) == bool(says)


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (("python", "nofile.py"), True),
        ((sys.executable, "-u", "nofile.py", "x"), True),
        (("node", "nofile.js"), True),
        (("python", "there.py", "nofile.py"), False),
        (("python", "-m", "nofile.py"), False),
        (("python", "-c", "x.y"), False),
        (("python", "{prompt}.py"), False),
        (("my-agent", "nofile.py"), False),
        (("bash", "nofile"), False),
    ],
)
def test_the_script_of_an_interpreter_is_looked_for(command: tuple[str, ...], missing: bool, tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("")
    assert bool(said(CommandAgent(command), tmp_path)) == missing


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ({"python": "strict:nofunc"}, "python: "),
        ({"python": "nomod:f"}, "python: there is no module 'nomod'"),
        ({"command": ["python", "nofile.py"]}, "command: there is no file 'nofile.py' for python"),
    ],
)
def test_run_and_validate_say_it_and_no_trial_begins(agent: dict[str, JSON], says: str, tmp_path: Path) -> None:
    (tmp_path / "strict.py").write_text("def answer(task): ...")
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps(agent))
    plain = write_scenario(tmp_path)
    for result in (
        CliRunner().invoke(validate, [str(path)]),
        CliRunner().invoke(run_command, [str(plain), "--agent", str(path), "--out", str(tmp_path / "runs")]),
        CliRunner().invoke(validate, [str(write_scenario(tmp_path, id="with", agent=agent))]),
    ):
        assert result.exit_code == 2
        assert says in result.stderr
    assert not (tmp_path / "runs").exists()


def test_ports_that_an_agent_knows_are_one_trials_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps({"http": {"url": "http://127.0.0.1:9", "ports": {"echo": 9001}}}))
    words = [str(write_scenario(tmp_path)), "--agent", str(path), "--jobs", "2", "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(run_command, words)
    assert result.exit_code == 2
    assert "http.ports: only one trial at a time can have them; --jobs 1" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_module_that_cannot_be_imported_says_nothing_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import not_installed_here\ndef answer(task): ...")
    (tmp_path / "agent.yaml").write_text(json.dumps({"python": "mine:answer"}))
    [trial] = run([write_scenario(tmp_path, servers=None)], tmp_path, agent=tmp_path / "agent.yaml").result.trials
    assert trial.verdict.status == "infra_error"
    assert "mine:answer cannot be imported: ModuleNotFoundError: No module named 'not_installed_here'" in (
        trial.verdict.reason
    )
