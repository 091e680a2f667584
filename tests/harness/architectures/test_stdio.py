"""The same agents over real proxy processes, by the command that a person types."""

import json
import sys
from pathlib import Path

import pytest

from proxy.spans import JSON
from tests.harness.architectures.trials import agent_file, credit_hold, try_once
from tests.harness.runs import HERE, marked, run, write_scenario


def seen(trace: dict[str, JSON]) -> list[JSON]:
    """The trace without times, ids, versions of clients and what names the transport."""
    calls, events = trace["tool_calls"], trace["events"]
    assert isinstance(calls, list)
    assert isinstance(events, list)
    kept: list[JSON] = []
    for item in [*calls, *events]:
        assert isinstance(item, dict)
        kept.append({key: item[key] for key in sorted(KEPT & item.keys())})
    return kept


TELLING = """
import os, sys
open(sys.argv[1], "w").write(" ".join(os.environ))
sys.path.insert(0, sys.argv[2])
import small_server
"""


def test_no_server_gets_the_keys_of_our_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "MY_MODEL_KEY", "ANOTHER_KEY"):
        monkeypatch.setenv(name, "not-a-real-key-0123456789")
    told = tmp_path / "told.txt"
    server: JSON = {"command": [sys.executable, "-c", TELLING, str(told), str(HERE)], "trust": "internal"}
    scenario = write_scenario(tmp_path, servers={"echo": server})
    rules: list[JSON] = [{"at_most": 1, "call": "echo"}, {"say": "done"}]
    agent = agent_file(tmp_path, rules, transport="stdio", model={"key": "MY_MODEL_KEY"})
    assert run([scenario], tmp_path, agent=agent).result.result == "pass"
    names = told.read_text().split()
    assert "ANOTHER_KEY" in names
    assert not {"ANTHROPIC_API_KEY", "MY_MODEL_KEY"} & {*names}


KEPT = {"type", "name", "arguments", "result", "outcome", "agent", "from", "to", "text", "instruction", "attempt"}


def test_a_supervisor_and_its_workers_leave_the_same_trace_over_stdio_and_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = {"MODEL_TRIAL_MARK": str(tmp_path)}
    monkeypatch.setenv("MODEL_TRIAL_MARK", str(tmp_path))
    scenario = credit_hold(tmp_path)
    workers: dict[str, JSON] = {"architecture": "supervisor_worker"}
    piped = run(
        [scenario.path], tmp_path / "piped", agent=agent_file(tmp_path, "copying", transport="stdio", **workers)
    )
    assert marked(mark) == []
    direct = try_once(scenario, agent_file(tmp_path, "copying", **workers), tmp_path, monkeypatch)
    assert (piped.result.result, direct.verdict.result) == ("pass", "pass")
    theirs = piped.document("support.credit_hold_escalation", "1", "trace.json")
    assert seen(theirs) == seen(json.loads((direct.folder / "trace.json").read_text()))
    trial = piped.result.trials[0]
    assert (trial.kind, trial.model, trial.gaps, trial.doubts) == ("scripted", "copying", (), ())
    spans = piped.folder / "support.credit_hold_escalation" / "1" / "spans"
    assert len(list(spans.glob("crm.*.jsonl"))) == 1
    assert len(list(spans.glob("ticketing.*.jsonl"))) == 1
