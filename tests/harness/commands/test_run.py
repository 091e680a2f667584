from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.agentfile import AgentError, load_agent, unknown_placeholders
from harness.commands.run import command


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
