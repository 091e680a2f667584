import json
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.checking import rejudge_run
from harness.commands.sweep import command
from harness.commands.validate import command as validate
from harness.discovery import classify, find_scenarios
from harness.modelagent import ModelAgent
from harness.running import Going
from harness.scenario import ScenarioError, load_scenario
from harness.selection import Selection, load_selection
from harness.sweepfile import load_sweep, with_models
from harness.sweeping import AGENTS, check_sweep, run_sweep
from harness.targets.fixtures import fixture_offers
from proxy.spans import JSON
from tests.harness.killing import differing, kill_at, left, records, run_folder, write_scenarios
from tests.harness.runs import SCENARIOS, write_scenario

STEPS: list[JSON] = [
    {"call": "mcp/ticketing/get_ticket", "arguments": {"ticket_id": 1}},
    {"say": "Read."},
]


def write_sweep(folder: Path, trials: int = 2, limits: Mapping[str, JSON] | None = None) -> Path:
    """Two agents, one of which only reads, on two small tasks."""
    write_scenarios(folder / "scenarios")
    (folder / "idle.yaml").write_text(json.dumps({"transport": "in_process", "steps": STEPS}))
    path = folder / "sweep.yaml"
    agents: dict[str, JSON] = {
        "writer": "scenarios/agent.yaml",
        "reader": {"closes": "idle.yaml", "fails": "idle.yaml"},
    }
    document: dict[str, JSON] = {
        "tasks": ["scenarios"],
        "agents": agents,
        "trials": trials,
        "limits": {**(limits or {})},
    }
    path.write_text(json.dumps(document))
    return path


def start(sweep: Path, out: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.cli", "sweep", str(sweep), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def told(folder: Path) -> JSON:
    """What sweep.json says, without ids and times."""

    def timeless(found: dict[str, JSON]) -> JSON:
        return {key: value for key, value in found.items() if key not in ("run_id", "seconds")}

    read: JSON = json.loads((folder / "sweep.json").read_text(), object_hook=timeless)
    return read


def verdicts(folder: Path) -> dict[str, int]:
    """The verdict files by place, with what tells one file from another."""
    return {str(path.relative_to(folder)): path.stat().st_ino for path in folder.glob("*/[0-9]/verdict.json")}


def test_a_sweep_that_is_killed_and_gone_on_with_is_the_sweep_that_was_not_and_does_only_what_changed_again(
    tmp_path: Path,
) -> None:
    sweep = write_sweep(tmp_path)
    whole, folder = run_sweep(load_sweep(sweep), Going(), out=tmp_path / "whole")
    assert whole.exit_code == 0
    assert {arm.name: (arm.raw.passed, arm.raw.trials) for arm in whole.arms} == {"writer": (2, 4), "reader": (0, 4)}
    record = random.Random().randint(1, records(tmp_path / "whole") - 3)
    outs = (tmp_path / f"out{attempt}" for attempt in range(5))
    out = next((out for out in outs if kill_at(start(sweep, out), out, record, workers=False)), None)
    assert out is not None
    killed = run_folder(out)
    run_sweep(load_sweep(sweep), Going(), out=out, resume=killed)
    assert differing(left(folder), left(killed)) == [], f"killed at record {record}"
    assert told(killed) == told(folder)
    assert {checked.result.verdict.result for checked in rejudge_run(folder, (), print)} == {"pass", "fail"}
    # Another agent file is another key, for the trials of that agent on that task alone.
    before = verdicts(killed)
    assert len(before) == 8
    (tmp_path / "other.yaml").write_text(json.dumps({"transport": "in_process", "steps": [*STEPS, {"say": "Again."}]}))
    sweep.write_text(sweep.read_text().replace('"fails": "idle.yaml"', '"fails": "other.yaml"'))
    run_sweep(load_sweep(sweep), Going(), out=out, resume=killed)
    after = verdicts(killed)
    assert before.keys() == after.keys()
    assert {place.rpartition("/")[0] for place in after if after[place] != before[place]} == {
        "reader.fails/1",
        "reader.fails/2",
    }
    done = CliRunner().invoke(command, [str(sweep), "--resume", str(killed), "--format", "json"])
    assert (done.exit_code, json.loads(done.output)["stopped"]) == (0, None)
    assert verdicts(killed) == after


def test_a_limit_of_tokens_ends_a_sweep_and_a_higher_one_lets_it_go_on(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    usage = {"type": "turn.completed", "usage": {"input_tokens": 90, "cached_input_tokens": 40, "output_tokens": 10}}
    program.write_text(f"import sys\nsys.stdin.read()\nprint({json.dumps(usage)!r})\n")
    (tmp_path / "agent.yaml").write_text(json.dumps({"profile": "codex", "command": [sys.executable, str(program)]}))
    write_scenario(tmp_path / "scenarios")
    sweep = tmp_path / "sweep.yaml"

    def limited(tokens: int) -> Path:
        agents: JSON = {"talker": "agent.yaml"}
        document: JSON = {"tasks": ["scenarios"], "agents": agents, "trials": 4, "limits": {"tokens": tokens}}
        sweep.write_text(json.dumps(document))
        return sweep

    stopped, folder = run_sweep(load_sweep(limited(150)), Going(), out=tmp_path / "runs")
    (arm,) = stopped.arms
    assert (len(arm.done), arm.not_done, stopped.exit_code) == (2, 2, 1)
    assert stopped.stopped == "limits.tokens: 200 of 150 tokens are used"
    assert (arm.total(lambda one: one.tokens_in), arm.total(lambda one: one.tokens_cached)) == (100, 80)
    assert arm.total(lambda one: one.cost) is None
    assert "Not finished: limits.tokens" in (folder / "sweep.txt").read_text()
    again, _ = run_sweep(load_sweep(sweep), Going(), out=tmp_path / "runs", resume=folder)
    assert [(len(arm.done), arm.not_done) for arm in again.arms] == [(2, 2)]
    finished, _ = run_sweep(load_sweep(limited(1000)), Going(), out=tmp_path / "runs", resume=folder)
    assert finished.exit_code == 0
    assert [(len(arm.done), arm.not_done) for arm in finished.arms] == [(4, 0)]


def validated(path: Path) -> tuple[int, str]:
    done = CliRunner().invoke(validate, [str(path)])
    return done.exit_code, done.output


def test_a_sweep_is_told_from_a_scenario_and_passed_over_in_a_folder_of_them(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path)
    assert classify(sweep) == "sweep"
    assert [path.name for path in find_scenarios([tmp_path])] == ["closes.yaml", "fails.yaml"]
    with pytest.raises(
        ScenarioError, match="this looks like a sweep, not like a scenario; give it to `wiretrap sweep`"
    ):
        load_scenario(sweep, fixture_offers())


def test_what_is_wrong_is_said_before_anything_is_made(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path)
    text = sweep.read_text()
    out = tmp_path / "runs"

    def said(*options: str) -> str:
        done = CliRunner().invoke(command, [str(sweep), "--out", str(out), *options])
        assert done.exit_code == 2
        assert not out.exists()
        return done.output

    sweep.write_text(text.replace('"fails": "idle.yaml"', '"other": "idle.yaml"'))
    assert "the agent 'reader' of the sweep has no file for this scenario; name one under its id" in said()
    sweep.write_text(text.replace("idle.yaml", "nowhere.yaml"))
    assert "nowhere.yaml: the file cannot be read: No such file or directory" in said()
    sweep.write_text(text)
    assert validated(sweep) == (0, f"{sweep}: ok: sweep\n")
    (tmp_path / "idle.yaml").write_text("steps: [{cal: x}]")
    assert validated(sweep)[0] == 2
    assert "there is no such run folder" in said("--resume", str(tmp_path / "nowhere"))


def test_architectures_by_models_say_who_lost_the_fact_and_how(tmp_path: Path) -> None:
    support = SCENARIOS / "support"
    shapes: dict[str, dict[str, JSON]] = {
        "open": {"architecture": "peer_to_peer"},
        "rigid": {"architecture": "peer_to_peer", "handoff": "rigid"},
        "supervisor": {"architecture": "supervisor_worker"},
    }
    own: JSON = {"provider": "scripted", "script": "nowhere.yaml"}
    for name, shape in shapes.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"model": own, "transport": "in_process", **shape}))
    models: dict[str, JSON] = {
        name: {"provider": "scripted", "script": str(support / "scripts" / f"{name}.yaml")}
        for name in ("copying", "forgetful")
    }
    agents: dict[str, JSON] = {name: f"{name}.yaml" for name in shapes}
    path = tmp_path / "sweep.yaml"
    tasks: JSON = [str(support / "credit_hold_escalation.yaml")]
    path.write_text(json.dumps({"tasks": tasks, "agents": agents, "models": models}))
    result, folder = run_sweep(load_sweep(path), Going(), out=tmp_path / "runs")
    found = {arm.name: (arm.raw.passed, dict(arm.categories)) for arm in result.arms}
    lost = {"coordination_failure / handoff_data_loss": 1}
    assert found == {
        "open-copying": (1, {}),
        "open-forgetful": (0, lost),
        "rigid-copying": (0, lost),
        "rigid-forgetful": (0, lost),
        "supervisor-copying": (1, {}),
        "supervisor-forgetful": (0, {"coordination_failure / worker_summary_loss": 1}),
    }
    ((had,),) = [tuple(arm.facts.values()) for arm in result.arms if arm.name == "rigid-copying"]
    assert [(one.readers, one.decider, one.decider_knew) for one in had] == [(("crm_peer",), "ticketing_peer", False)]
    assert {path.stem for path in (folder / AGENTS).iterdir()} == found.keys()


def test_an_agent_file_that_is_made_for_a_model_still_finds_the_scripts_beside_the_one_it_was_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("agents/scripts/critic.yaml", "scripts/all.yaml"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("script: [{say: ACCEPT}]")
    model: JSON = {"provider": "scripted", "script": "scripts/critic.yaml"}
    agent: JSON = {"model": model, "models": {"critic": model}, "architecture": "debate_critic"}
    (tmp_path / "agents" / "debate.yaml").write_text(json.dumps(agent))
    models: JSON = {"one": {"provider": "scripted", "script": "scripts/all.yaml"}}
    tasks: JSON = [str(SCENARIOS / "support" / "credit_hold_escalation.yaml")]
    agents: JSON = {"debate": "agents/debate.yaml"}
    (tmp_path / "sweep.yaml").write_text(json.dumps({"tasks": tasks, "agents": agents, "models": models}))
    monkeypatch.chdir(tmp_path)
    sweep = load_sweep(Path("sweep.yaml"))
    check_sweep(sweep)
    selected = load_selection(Selection(sweep.tasks, arms=with_models(sweep, tmp_path / "elsewhere")))
    [made] = selected.agents.values()
    assert isinstance(made, ModelAgent)
    assert made.files == (
        tmp_path / "elsewhere" / "debate-one.yaml",
        tmp_path / "scripts" / "all.yaml",
        tmp_path / "agents" / "scripts" / "critic.yaml",
    )


def test_the_sweep_that_is_shipped_can_be_run_and_names_an_agent_of_each_task_for_every_architecture() -> None:
    sweep = load_sweep(SCENARIOS / "sweeps" / "architectures.yaml")
    check_sweep(sweep)
    assert len(sweep.arms) == 5
