from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.validate import command

SCENARIO = (
    "id: {}\ntitle: t\ncategory: task\ninput: {{}}\nassertions: [{{type: no_denied_tool_call}}, {{type: judged}}]\n"
)


def test_files_that_hold_have_a_line_each_and_exit_0(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCENARIO.format("x"))
    (tmp_path / "b.yaml").write_text("command: [run]")
    (tmp_path / "c.yaml").write_text("rules: []")
    (tmp_path / "d.yaml").write_text("tickets: [{id: 1}]")
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{tmp_path}/a.yaml: ok: scenario x (not_run: judged is not built yet)",
        f"{tmp_path}/b.yaml: ok: agent",
        f"{tmp_path}/c.yaml: ok: policy",
        f"{tmp_path}/d.yaml: ok: seed",
    ]


def test_every_error_has_a_line_with_file_line_and_field_and_the_exit_code_is_2(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "id: x\ntitle: 12\ncategory: task\ninput: {}\nassertions: [{type: judged}]\nmore: 1"
    )
    (tmp_path / "b.yaml").write_text("steps:\n- call: x")
    (tmp_path / "c.yaml").write_text("rules:\n- deny: x")
    (tmp_path / "d.yaml").write_text("tickets:\n- id: {}")
    (tmp_path / "e.yaml").write_text(SCENARIO.format("e"))
    (tmp_path / "f.yaml").write_text(SCENARIO.format("e"))
    result = CliRunner().invoke(command, [str(tmp_path), str(tmp_path / "none")])
    assert result.exit_code == 2
    starts = ["none: there is no", "a.yaml:2: title: ", "a.yaml:6: more: ", "b.yaml:2: steps[0].call: "]
    starts += ["c.yaml:2: rules[0].deny: ", "d.yaml:2: tickets[0].id: ", "f.yaml: id: "]
    lines = result.stderr.splitlines()
    assert len(lines) == len(starts)
    assert all(line.startswith(f"{tmp_path}/{start}") for line, start in zip(lines, starts, strict=True))


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert (result.exit_code, result.stderr) == (2, f"{tmp_path}: there is no YAML file in this folder\n")


def test_no_path_at_all_is_an_error() -> None:
    assert CliRunner().invoke(command, []).exit_code == 2


def test_a_misspelt_assertion_type_is_pointed_out(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(SCENARIO.format("x").replace("judged", "tool_caled"))
    result = CliRunner().invoke(command, [str(file)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "no assertion type is called 'tool_caled'; did you mean tool_called?" in result.stdout


def test_a_fixture_that_is_not_there_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCENARIO.format("x") + "servers: {crm: {fixture: crmm}}\n")
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert result.exit_code == 2
    assert "a.yaml:6: servers.crm.fixture: there is no fixture 'crmm'; there are crm, " in result.stderr


def test_a_value_of_the_environment_is_hidden_where_a_problem_quotes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "Correct-Horse-77")
    path = tmp_path / "wrong.yaml"
    cut = "x" * 32 + "Correct-Horse-77"
    path.write_text(f"id: Correct-Horse-77!\ntitle: t\ncategory: {cut}\ninput: {{}}\nassertions: []\n")
    ran = CliRunner().invoke(command, [str(path)])
    assert ran.exit_code == 2
    assert "[redacted:" in ran.output
    assert "Correct" not in ran.output
