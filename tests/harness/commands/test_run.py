import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.agentfile import AgentError, load_agent, unknown_placeholders
from harness.commands.run import command
from tests.harness.runs import write_scenario


def test_a_placeholder_that_nobody_fills_in_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path), "--command", "cat {promt} {mcp_config}"])
    assert result.exit_code == 2
    assert (
        "--command: there is no placeholder {promt}; there are {prompt}, {prompt_file}, {mcp_config}" in result.stderr
    )
    file = tmp_path / "agent.yaml"
    file.write_text("command: [cat, '{mcp_confg}']")
    with pytest.raises(AgentError, match=r"agent\.yaml:1: command: there is no placeholder \{mcp_confg\}"):
        load_agent(file)


@pytest.mark.parametrize(
    "word", ["{prompt}", "--x={mcp_config}", "${home}", '{"a": 1}', "{}", "{A}", "{a,b}", "{ print }"]
)
def test_other_braces_are_the_programs_own(word: str) -> None:
    assert unknown_placeholders([word]) == []


def ran(folder: Path, *arguments: str) -> str:
    out = ["--out", str(folder / "runs")]
    return CliRunner().invoke(command, [str(write_scenario(folder)), *out, *arguments]).output


def test_a_program_that_crashes_is_told_once_with_where_its_last_words_are(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("import sys\nprint('first', file=sys.stderr)\nsys.exit('no key given\\n\\n')")
    text = ran(tmp_path, "--command", f"{sys.executable} {agent}")
    assert "trial 1: fail (agent_crash): the agent ended with exit code 1" in text
    assert text.count("not run") == 1
    (line,) = [line for line in text.splitlines() if "ends in" in line]
    path, _, said = line.strip().partition(" ends in: ")
    assert (Path(path).read_text().split("\n")[0], said) == ("first", "no key given")


def test_the_last_words_of_a_group_of_exceptions_are_an_exceptions(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("raise ExceptionGroup('several', [ValueError('first'), ValueError('no key given')])")
    text = ran(tmp_path, "--command", f"{sys.executable} {agent}")
    (line,) = [line for line in text.splitlines() if "ends in" in line]
    assert line.endswith(" ends in: ValueError: no key given")


def test_an_agent_that_never_spoke_to_a_server_is_told_so_in_plain_words(tmp_path: Path) -> None:
    text = ran(tmp_path, "--command", "true")
    assert "not run tool_called: the agent never spoke to a server through the proxy" in text
    assert (
        "its command has no {mcp_config}, so it must read the file that the variable WIRETRAP_MCP_CONFIG names" in text
    )
    assert "ends in" not in text


def test_an_agent_that_was_given_the_configuration_gets_no_hint_to_it(tmp_path: Path) -> None:
    text = ran(tmp_path, "--command", "true --mcp={mcp_config}")
    assert "never spoke to a server" in text
    assert "WIRETRAP_MCP_CONFIG" not in text


def test_a_program_that_is_not_there_is_told_under_the_option_that_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "--profile codex: the program 'codex' is not found" in ran(tmp_path, "--profile", "codex")
    assert "--command: the program 'x' is not found" in ran(tmp_path, "--profile", "codex", "--command", "x")


def test_a_seq_in_a_reason_is_explained(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("steps: [{call: mcp/echo/echo}]")
    wanted = "{type: tool_called, tool: mcp/echo/echo, arguments: {x: 1}}"
    scenario = write_scenario(tmp_path)
    scenario.write_text(scenario.read_text().replace('{"type": "tool_called", "tool": "mcp/echo/echo"}', wanted))
    agent = str(tmp_path / "agent.yaml")
    text = CliRunner().invoke(command, [str(scenario), "--out", str(tmp_path / "runs"), "--agent", agent]).output
    assert "has other arguments" in text
    assert "(seq N) is the call with that `seq` in SCENARIO/TRIAL/trace.json there." in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("agent --token {} 'open", "--command cannot be taken apart into words: No closing quotation"),
        ("'/no/{}/agent'", "is not found"),
    ],
)
def test_what_is_wrong_with_a_command_is_said_without_a_secret_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    secret = 'Zq7\\tab"of-the-run'
    monkeypatch.setenv("AGENT_TOKEN", secret)
    output = ran(tmp_path, "--command", words.format(secret))
    assert said in output
    for form in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], secret[:4]):
        assert form not in output
