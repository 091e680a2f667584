from pathlib import Path

import pytest

from harness.discovery import classify, find_scenarios, load_scenarios
from harness.lookalike import UP_FIELDS
from harness.scenario import ScenarioError
from harness.up.upfile import UpEntry

SCENARIO = "id: {}\ntitle: t\ncategory: task\ninput: {{}}\nassertions: [{{type: no_denied_tool_call}}]\n"


def test_the_fields_of_a_file_of_wiretrap_up_are_known() -> None:
    assert set(UpEntry.model_fields) == UP_FIELDS


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("s.yaml", SCENARIO.format("a"), "scenario"),
        ("s.yaml", "id: a\nprompt: do it", "scenario"),
        ("s.yaml", "command: [x]", "agent"),
        ("s.yaml", "steps: [{say: a}]", "agent"),
        ("s.yaml", "transport: stdio\nsteps: []", "agent"),
        ("s.yaml", "rules: [{deny: mcp/a/b}]", "policy"),
        ("s.yaml", "default: deny", "policy"),
        ("s.yaml", "tickets: [{id: 1}]\nmore: []", "seed"),
        ("s.yaml", "what: ever", "scenario"),
        ("s.yaml", "id: a\nid: b", "scenario"),
        ("s.yaml", "", "scenario"),
        ("agents/s.yaml", SCENARIO.format("a"), "scenario"),
        ("agents/s.yaml", "stps: []", "agent"),
        ("agents/s.yaml", "a: [", "agent"),
        ("seeds/s.yaml", "a: [", "seed"),
        ("policies/s.yaml", "a: [", "policy"),
    ],
)
def test_a_file_is_what_its_fields_say_else_its_folder(tmp_path: Path, name: str, text: str, kind: str) -> None:
    assert classify(put(tmp_path, {name: text}) / name) == kind


def test_a_folder_has_the_scenarios_under_it_in_order(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "b/one.yaml": SCENARIO.format("b"),
            "a.yml": SCENARIO.format("a"),
            "c.yaml": "id: broken\nid: twice",
            "b/agents/x.yaml": "steps: []",
            "b/seeds/x.yaml": "tickets: [{id: 1}]",
            "b/policies/x.yaml": "rules: []",
            ".hidden/x.yaml": SCENARIO.format("h"),
            "notes.txt": "id: n",
        },
    )
    assert find_scenarios([tmp_path]) == [tmp_path / "a.yml", tmp_path / "b/one.yaml", tmp_path / "c.yaml"]
    assert find_scenarios([tmp_path / "b/one.yaml", tmp_path / "b"]) == [tmp_path / "b/one.yaml"]


def test_a_path_without_a_scenario_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ScenarioError) as caught:
        find_scenarios([tmp_path / "empty", tmp_path / "none"])
    assert [problem.message for problem in caught.value.problems] == [
        "there is no scenario in this folder",
        "there is no such file or folder",
    ]


def test_two_scenarios_of_one_id_are_an_error(tmp_path: Path) -> None:
    put(tmp_path, {"a.yaml": SCENARIO.format("x"), "b.yaml": SCENARIO.format("x"), "c.yaml": SCENARIO.format("y")})
    with pytest.raises(ScenarioError, match=r"b\.yaml: id: the id 'x' is taken by .*a\.yaml"):
        load_scenarios([tmp_path])
    assert [scenario.id for scenario in load_scenarios([tmp_path / "b.yaml", tmp_path / "c.yaml"])] == ["x", "y"]


def test_what_is_wrong_with_every_scenario_is_said_at_once(tmp_path: Path) -> None:
    put(tmp_path, {"a.yaml": "id: 1", "b.yaml": "id: a\nid: b"})
    with pytest.raises(ScenarioError) as caught:
        load_scenarios([tmp_path])
    assert {Path(problem.file).name for problem in caught.value.problems} == {"a.yaml", "b.yaml"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [("pythn: a:b", "agent"), ("httpx: {}", "agent"), ("defualt: deny", "policy"), ("titel: x", "scenario")],
)
def test_a_slip_in_the_one_field_that_tells_makes_it_no_other_file(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "it.yaml").write_text(text)
    assert classify(tmp_path / "it.yaml") == kind
