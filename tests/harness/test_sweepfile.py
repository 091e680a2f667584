import json
import stat
from pathlib import Path

import pytest

from harness.selection import Arm
from harness.sweepfile import SweepFileError, load_sweep, with_models
from harness.sweeping import check_sweep
from proxy.spans import JSON


def write(folder: Path, **fields: JSON) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(json.dumps({"tasks": ["scenarios"], "agents": {"one": "one.yaml"}, **fields}))
    return path


def test_paths_are_found_from_the_folder_of_the_file(tmp_path: Path) -> None:
    sweep = load_sweep(write(tmp_path, agents={"one": "a/one.yaml", "two": {"x.y": "two.yaml"}}, trials=5))
    assert sweep.tasks == (str(tmp_path / "scenarios"),)
    assert sweep.agents == (
        Arm("one", str(tmp_path / "a/one.yaml")),
        Arm("two", None, {"x.y": str(tmp_path / "two.yaml")}),
    )
    assert (sweep.arms, sweep.trials, sweep.tokens, sweep.cost) == (("one", "two"), 5, None, None)
    assert with_models(sweep, tmp_path / "made") == sweep.agents
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"agents": {}}, "agents: this may not be empty"),
        ({"tasks": []}, "tasks: this may not be empty"),
        ({"agents": {"a.b": "x.yaml"}}, "agents.a.b"),
        ({"trials": 0}, "trials: expected at least 1, not the number 0"),
        ({"limits": {"cost": 0}}, "limits.cost: expected more than 0, not the number 0"),
        ({"limits": {"token": 5}}, "limits.token: unknown field"),
        ({"agent": {}}, "agent: unknown field; here may stand tasks, agents, models, trials, limits"),
        (
            {"agents": {"a": "x.yaml", "a-b": "x.yaml"}, "models": {"b-c": {}, "c": {}}},
            "models: two pairs of agent and model have one name",
        ),
    ],
)
def test_what_is_wrong_with_a_file_names_the_field(tmp_path: Path, fields: dict[str, JSON], says: str) -> None:
    path = write(tmp_path, **fields)
    with pytest.raises(SweepFileError) as caught:
        load_sweep(path)
    assert any(says in str(problem) and str(path) in str(problem) for problem in caught.value.problems)


def test_each_model_takes_the_place_of_the_agents_own_in_a_private_file(tmp_path: Path) -> None:
    agent = {"model": {"provider": "scripted", "script": "x.yaml"}, "architecture": "peer_to_peer"}
    (tmp_path / "one.yaml").write_text(json.dumps(agent))
    models: JSON = {"big": {"provider": "gemini", "name": "g"}, "small": {"provider": "scripted", "script": "s/y.yaml"}}
    sweep = load_sweep(write(tmp_path, models=models))
    assert sweep.arms == ("one-big", "one-small")
    arms = with_models(sweep, tmp_path / "made")
    assert tuple(arm.name for arm in arms) == sweep.arms
    made = [json.loads(Path(str(arm.file)).read_text()) for arm in arms]
    assert made == [
        {"model": {"provider": "gemini", "name": "g"}, "architecture": "peer_to_peer"},
        {"model": {"provider": "scripted", "script": str(tmp_path / "s/y.yaml")}, "architecture": "peer_to_peer"},
    ]
    assert stat.S_IMODE(Path(str(arms[0].file)).stat().st_mode) == 0o600
    # Going on with a sweep writes them again.
    assert with_models(sweep, tmp_path / "made") == arms


def test_an_agent_without_a_model_cannot_be_given_another(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("steps: []")
    sweep = load_sweep(write(tmp_path, models={"big": {"provider": "gemini"}}))
    with pytest.raises(SweepFileError, match="the agent has no model that one of the sweep's could replace"):
        with_models(sweep, tmp_path / "made")


def test_a_secret_in_a_model_is_refused_before_it_stands_in_a_file_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "sk-9f31c07d22ab")
    (tmp_path / "one.yaml").write_text(json.dumps({"model": {"provider": "scripted", "script": "x.yaml"}}))
    sweep = load_sweep(write(tmp_path, models={"big": {"provider": "gemini", "base_url": "http://x/sk-9f31c07d22ab"}}))
    with pytest.raises(SweepFileError, match="one-big would hold the value of a secret variable"):
        check_sweep(sweep)
