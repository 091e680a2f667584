import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.validate import command, describe_scenario
from harness.scenario import load_scenario
from harness.targets.proxied import wiretrap_command
from proxy.spans import JSON
from tests.harness.runs import write_scenario

SCENARIO = "id: {}\ntitle: t\ncategory: task\ninput: {{}}\nassertions: [{{type: no_denied_tool_call}}, {{type: zzz}}]\n"


def test_files_that_hold_have_a_line_each_and_exit_0(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCENARIO.format("x"))
    (tmp_path / "b.yaml").write_text("command: [run]")
    (tmp_path / "c.yaml").write_text("rules: []")
    (tmp_path / "d.yaml").write_text("tickets: [{id: 1}]")
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{tmp_path}/a.yaml: ok: scenario x (not_run: no assertion type is called 'zzz')",
        f"{tmp_path}/b.yaml: ok: agent",
        f"{tmp_path}/c.yaml: ok: policy",
        f"{tmp_path}/d.yaml: ok: seed",
    ]


def test_every_error_has_a_line_with_file_line_and_field_and_the_exit_code_is_2(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("id: x\ntitle: 12\ncategory: task\ninput: {}\nassertions: [{type: zzz}]\nmore: 1")
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
    file.write_text(SCENARIO.format("x").replace("zzz", "tool_caled"))
    result = CliRunner().invoke(command, [str(file)])
    assert result.exit_code == 2
    assert "no assertion type is called 'tool_caled'; did you mean tool_called?" in result.stderr


def test_a_fixture_that_is_not_there_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCENARIO.format("x") + "servers: {crm: {fixture: crmm}}\n")
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert result.exit_code == 2
    assert "a.yaml:6: servers.crm.fixture: there is no fixture 'crmm'; there are crm, " in result.stderr


def test_a_policy_file_with_the_key_of_a_scenario_says_what_to_take_out(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("policy:\n  rules: []\n")
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert result.stderr.endswith("the policy's fields themselves; take the key policy out\n")


def test_a_key_of_an_open_map_that_is_nearly_one_of_ours_is_a_note(tmp_path: Path) -> None:
    text = SCENARIO.format("x").replace("input: {}", "input: {user_mesage: Hi, mine: 1}\nexpected: {denied_tool: [x]}")
    (tmp_path / "a.yaml").write_text(text)
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"{tmp_path}/a.yaml:4: input.user_mesage: note: nobody reads this field; did you mean user_message?",
        f"{tmp_path}/a.yaml:5: expected.denied_tool: note: nobody reads this field; did you mean denied_tools?",
    ]


STATE = "{type: state, server: own, query: select 1, equals: [[1]]}, {type: state_unchanged}"


def test_state_of_servers_that_nobody_can_look_into_is_named_as_not_run(tmp_path: Path) -> None:
    def said(servers: str, assertions: str) -> str:
        scenario = SCENARIO.format("x").partition("assertions")[0]
        (tmp_path / "a.yaml").write_text(f"{scenario}servers: {servers}\nassertions: [{assertions}]\n")
        return CliRunner().invoke(command, [str(tmp_path)]).stdout.partition("scenario x")[2].strip()

    own = "own: {command: [server]}"
    assert said(f"{{{own}}}", STATE) == (
        "(not_run: state: nothing is known of the state of own, since only that of fixtures is; "
        "state_unchanged: nothing is known of the state of any server, since only that of fixtures is)"
    )
    assert "not_run" not in said(f"{{{own}, crm: {{fixture: crm}}}}", "{type: state_unchanged}")
    assert "state of own" in said(f"{{{own}, crm: {{fixture: crm}}}}", "{type: state_unchanged, servers: [crm, own]}")


def test_errors_come_in_the_order_of_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("steps:\n- {call: x}\n- {say: 3}\nmore: 1\n")
    result = CliRunner().invoke(command, [str(tmp_path)])
    lines = [int(line.split(":")[1]) for line in result.stderr.splitlines()]
    assert lines == sorted(lines)
    assert len(lines) > 0


def test_an_assertion_is_spoken_of_as_everything_else_is(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(SCENARIO.format("a b").replace("{type: zzz}", "{type: tool_called, tool: 3, tol: 1}"))
    assert [line.partition(": ")[2] for line in CliRunner().invoke(command, [str(file)]).stderr.splitlines()] == [
        "id: an id is made of letters, digits, '.', '_' and '-', and 'a b' is not",
        "assertions[1].tool: expected text, not the number 3; put it in quotes",
        "assertions[1].tol: unknown field; here may stand type, id, tool, arguments, min, max, counts",
    ]


def test_a_list_under_a_list_that_is_whole_is_told_in_plain_words(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("assertions: []\n  - {type: zzz}\n")
    assert (
        "a.yaml:2: not YAML: this does not go on from what stands above"
        in CliRunner().invoke(command, [str(file)]).stderr
    )


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


def test_a_pipe_is_refused_and_does_not_hold_the_command_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    done = subprocess.run(
        [*wiretrap_command(), "validate", tmp_path / "pipe.yaml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "pipe.yaml: is no regular file" in done.stderr


@pytest.mark.parametrize(
    ("assertions", "noted"),
    [
        ([{"type": "no_denied_tool_call"}, {"type": "tool_not_called", "tool": "mcp/echo/x"}], True),
        ([{"type": "tool_called", "tool": "mcp/echo/x", "min": 0, "max": 1}, {"type": "state_unchanged"}], True),
        ([{"type": "memory_isolation"}], True),
        ([{"type": "no_denied_tool_call"}, {"type": "tool_called", "tool": "mcp/echo/x"}], False),
        ([{"type": "no_denied_tool_call"}, {"type": "judged", "rubric": "x"}], True),
    ],
)
def test_a_scenario_in_which_nothing_has_to_happen_is_noted(
    tmp_path: Path, assertions: list[JSON], noted: bool
) -> None:
    expected: JSON = {"memory_isolation": {"forbidden_markers": ["MARKER-1"]}}
    scenario = load_scenario(write_scenario(tmp_path, assertions=assertions, expected=expected))
    assert ("nothing has to happen" in describe_scenario(scenario)) is noted


def test_a_file_of_wiretrap_up_is_checked_as_one(tmp_path: Path) -> None:
    file = tmp_path / "up.yaml"
    file.write_text("servers: {a: {command: [cat]}}")
    done = CliRunner().invoke(command, [str(tmp_path)])
    assert (done.exit_code, done.stdout) == (0, f"{file}: ok: file of `wiretrap up`\n")
    file.write_text("health: 0\nservers: {a: {comand: [cat]}}")
    done = CliRunner().invoke(command, [str(file)])
    assert (done.exit_code, f"{file}:2: servers.a.comand: unknown field" in done.stderr) == (2, True)
