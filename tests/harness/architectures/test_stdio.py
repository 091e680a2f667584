"""The same agents over real proxy processes, by the command that a person types."""

import json
from pathlib import Path

import pytest

from proxy.spans import JSON
from tests.harness.architectures.trials import agent_file, credit_hold
from tests.harness.runs import Ran, marked, run


def seen(ran: Ran) -> list[JSON]:
    """The trace without times, ids, versions of clients and what names the transport."""
    trace = ran.document("support.credit_hold_escalation", "1", "trace.json")
    calls, events = trace["tool_calls"], trace["events"]
    assert isinstance(calls, list)
    assert isinstance(events, list)
    kept: list[JSON] = []
    for item in [*calls, *events]:
        assert isinstance(item, dict)
        kept.append({key: item[key] for key in sorted(KEPT & item.keys())})
    return kept


KEPT = {"type", "name", "arguments", "result", "outcome", "agent", "from", "to", "text", "instruction", "attempt"}


def test_a_supervisor_and_its_workers_leave_the_same_trace_over_stdio_and_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = {"MODEL_TRIAL_MARK": str(tmp_path)}
    monkeypatch.setenv("MODEL_TRIAL_MARK", str(tmp_path))
    scenario = credit_hold(tmp_path).path
    workers: dict[str, JSON] = {"architecture": "supervisor_worker"}
    piped = run([scenario], tmp_path / "piped", agent=agent_file(tmp_path, "copying", transport="stdio", **workers))
    assert marked(mark) == []
    direct = run([scenario], tmp_path / "direct", agent=agent_file(tmp_path, "copying", **workers))
    assert (piped.result.result, direct.result.result) == ("pass", "pass")
    assert [json.dumps(item) for item in seen(piped)] == [json.dumps(item) for item in seen(direct)]
    trial = piped.result.trials[0]
    assert (trial.kind, trial.model, trial.gaps, trial.doubts) == ("scripted", "copying", (), ())
    spans = piped.folder / "support.credit_hold_escalation" / "1" / "spans"
    assert len(list(spans.glob("crm.*.jsonl"))) == 1
    assert len(list(spans.glob("ticketing.*.jsonl"))) == 1
