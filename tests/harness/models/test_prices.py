from typing import Literal

import pytest

from harness.modelagent import ModelChoice, Prices
from harness.models.model import Usage
from harness.models.prices import cost_of, cost_told, is_charged, price_table, prices_of
from proxy.spans import JSON


def test_a_cost_is_each_kind_of_token_at_its_own_price() -> None:
    assert cost_of(Usage(1_000_000, 500_000, 200_000), Prices(1.0, 4.0, 0.5)) == pytest.approx(3.1)
    assert cost_of(Usage(0, 0, 0), Prices(1.0, 4.0, 0.5)) == 0


@pytest.mark.parametrize("usage", [Usage(), Usage(1, None, 0), Usage(1, 1, None)])
def test_a_count_or_a_price_that_is_not_known_makes_no_cost_of_0(usage: Usage) -> None:
    assert cost_of(usage, Prices(1.0, 1.0, 1.0)) is None
    assert cost_of(Usage(1, 1, 1), None) is None


def test_a_price_is_found_for_a_model_and_its_dated_versions_and_for_no_other() -> None:
    haiku = prices_of(ModelChoice("anthropic", "claude-haiku-4-5"))
    assert haiku is not None
    assert haiku.cached < haiku.input < haiku.output
    assert prices_of(ModelChoice("anthropic", "claude-haiku-4-5-20251001")) == haiku
    assert prices_of(ModelChoice("openai", "gpt-4o-2024-08-06")) == prices_of(ModelChoice("openai", "gpt-4o"))
    for unknown in ("gpt-4o-audio-preview", "my-own-model", "gpt-4o-", "gpt-4.1-2", "gpt-5-1", "gpt-4o-20-24-08-06"):
        assert prices_of(ModelChoice("openai", unknown)) is None
    assert prices_of(ModelChoice("scripted", "copying")) is None
    mine = Prices(1, 2, 3)
    assert prices_of(ModelChoice("openai", "my-own-model", prices=mine)) == mine


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai"])
def test_every_model_of_the_table_has_its_own_price_and_those_named_like_it_have_none(
    provider: Literal["anthropic", "gemini", "openai"],
) -> None:
    models = price_table().prices[provider]
    for name, entry in models.items():
        for said in (name, f"{name}-20260101", f"{name}-2026-01-01", f"{name}-001"):
            assert prices_of(ModelChoice(provider, said)) == Prices(entry.input, entry.output, entry.cached)
        for unknown in (f"{name}-9", f"{name}-0", f"{name}-20", f"{name}-\u0660\u0660\u0661"):
            assert unknown in models or prices_of(ModelChoice(provider, unknown)) is None


def test_the_table_says_when_and_where_it_was_read_off() -> None:
    table = price_table()
    assert table.as_of >= "2026-11-30"
    assert "genai-prices" in table.source
    for models in table.prices.values():
        for price in models.values():
            assert 0 < price.cached < price.input < price.output


def test_a_call_of_a_model_costs_what_it_says_or_what_the_table_makes_of_its_tokens() -> None:
    told: dict[str, JSON] = {"model": "gpt-4o-2024-08-06", "in": 1_000_000, "cached": 1_000_000, "out": 1_000_000}
    assert cost_told(told) == pytest.approx(2.5 + 1.25 + 10)
    assert cost_told({**told, "cost": 0.5}) == 0.5
    # Our own loop says that it is not known, and then it is not looked for.
    assert cost_told({**told, "cost": None}) is None
    for lacking in ({"cached": None}, {"model": "mine"}, {"model": None}, {"cost": True}):
        assert cost_told({**told, **lacking}) is None


def test_a_call_that_failed_before_it_took_a_token_is_not_charged() -> None:
    assert not is_charged({"error": True, "in": None})
    assert is_charged({"error": True, "in": 3})
    assert is_charged({"error": False, "in": None})
