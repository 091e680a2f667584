"""A whole trial over a provider's model, played by a stand-in: its retries are in the trace, its key is nowhere."""

import json
from pathlib import Path

import pytest

from harness.hiding import make_hiding
from harness.measuring import measure
from harness.observability import Measure
from harness.report.seen import matrix, matrix_lines
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


@pytest.mark.parametrize(("name", "known"), [("gemini-2.5-flash", True), ("a-model-of-mine", False)])
def test_the_tokens_of_a_provider_and_the_price_table_make_the_cost_that_reports_show(
    name: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    done: JSON = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Looked up."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 7, "cachedContentTokenCount": 20},
    }
    with stand_in() as api:
        api.answers = [ALL[2].error(429, retry_after="0"), gemini_whole(), as_json(done)]
        agent = tmp_path / "agent.yaml"
        model = {"provider": "gemini", "name": name, "base_url": api.url}
        agent.write_text(json.dumps({"model": model, "transport": "in_process"}))
        tried = try_once(credit_hold(tmp_path), agent, tmp_path, monkeypatch)
    tokens, cost = tried.result.measures["tokens"], tried.result.measures["cost"]
    assert (tokens.seen, tokens.value) == ("observed", INPUT + OUTPUT + CACHED + 50 + 7)
    _, row = matrix_lines(matrix([(tried.result.target, tried.result.measures)]))
    if known:
        # The attempt that was turned away took nothing; what was in the cache has a price of its own.
        price = ((INPUT + 30) * 0.3 + (OUTPUT + 7) * 2.5 + (CACHED + 20) * 0.03) / 1e6
        assert cost.seen == "derived"
        assert cost.value == pytest.approx(price)
        assert cost.why == "of tokens and a table of prices; without 1 that failed and tell no tokens"
        assert measure(credit_hold(tmp_path), tried.trace).cost == pytest.approx(price)
        assert row.split()[-3:] == ["observed", "derived", "observed"]
    else:
        assert cost == Measure("not observable", "the price of 2 of 2 calls is not known")
        assert measure(credit_hold(tmp_path), tried.trace).cost is None
        assert "not observable" in row
