"""A whole trial over a provider's model, played by a stand-in: its retries are in the trace, its key is nowhere."""

import json
from pathlib import Path

import pytest

from harness.hiding import make_hiding
from proxy.spans import JSON
from tests.harness.architectures.trials import credit_hold, try_once
from tests.harness.models.played import ALL, CACHED, INPUT, OUTPUT, gemini_whole
from tests.harness.models.provider_standin import as_json, stand_in

KEY = "not-a-real-key-0123456789"


def test_a_provider_that_is_busy_at_first_is_asked_again_in_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    done: JSON = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Looked up."}]}, "finishReason": "STOP"}]
    }
    with stand_in() as api:
        api.answers = [ALL[2].error(429, retry_after="0"), gemini_whole(), as_json(done)]
        agent = tmp_path / "agent.yaml"
        model = {"provider": "gemini", "name": "gemini-2.5-flash", "base_url": api.url}
        agent.write_text(json.dumps({"model": model, "transport": "in_process"}))
        tried = try_once(credit_hold(tmp_path), agent, tmp_path, monkeypatch)
    assert tried.verdict.status == "completed", tried.verdict
    assert (tried.result.kind, tried.result.model) == ("real", "gemini-2.5-flash")
    calls = [event.fields for event in tried.events("model_call")]
    assert [(call["attempt"], call["error"], call.get("status")) for call in calls] == [
        (1, True, 429),
        (2, False, None),
        (1, False, None),
    ]
    assert (calls[1]["in"], calls[1]["out"], calls[1]["cached"]) == (INPUT, OUTPUT, CACHED)
    assert calls[1]["cost"] == pytest.approx((INPUT * 0.3 + OUTPUT * 2.5 + CACHED * 0.03) / 1e6)
    # No usage in the last answer: not known, and not 0.
    assert (calls[2]["in"], calls[2]["cost"]) == (None, None)
    [call] = tried.trace.tool_calls
    assert (call.mcp_tool_name, call.agent, call.outcome) == ("get_customer_profile", "agent", "ok")
    assert make_hiding({"key": KEY}, bytes(32)).finds(KEY)
    for file in tried.folder.rglob("*"):
        assert not file.is_file() or KEY not in file.read_text()
