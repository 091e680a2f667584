"""What the tokens of a model call cost, by a dated table. A price that nobody knows is None, never 0.

Refuses to know agents and limits.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import Field

from harness.intake import Entry
from harness.modelagent import ModelChoice, Prices, PricesEntry
from harness.models.model import Usage
from proxy.spans import JSON
from proxy.yamlfile import load_document

TABLE = Path(__file__).with_name("prices.yaml")
_MILLION = 1_000_000
_MOST = 2**53
_DATED = re.compile(r"(.+)-(?:20\d{6}|20\d{2}-\d{2}-\d{2}|\d{3})", re.ASCII)
"""A model's name with the date or the number of its version, as providers write them."""


class TableEntry(Entry):
    """The price table: when it was read off, where, and US dollars for a million tokens by provider and model."""

    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    source: str = Field(min_length=1)
    prices: dict[str, dict[str, PricesEntry]]


@cache
def price_table() -> TableEntry:
    """The table that comes with Wiretrap."""
    return TableEntry.model_validate(load_document(TABLE.read_bytes(), TABLE.name).data)


def prices_of(choice: ModelChoice) -> Prices | None:
    """What the agent file says, else the table; a name in the table also stands for its dated versions."""
    if choice.prices is not None:
        return choice.prices
    return _listed(price_table().prices.get(choice.provider, {}), choice.name)


def _listed(known: Mapping[str, PricesEntry], name: str) -> Prices | None:
    dated = _DATED.fullmatch(name)
    # The name itself comes first: what looks like a version of one model may be the name of another.
    entry = known.get(name) or (known.get(dated[1]) if dated is not None else None)
    return None if entry is None else Prices(entry.input, entry.output, entry.cached)


def cost_of(usage: Usage, prices: Prices | None) -> float | None:
    """US dollars; None where the price or a count is not known."""
    match usage:
        case Usage(input=int() as tokens, output=int() as said, cached=int() as cached) if prices is not None:
            return (tokens * prices.input + said * prices.output + cached * prices.cached) / _MILLION
        case _:
            return None


def cost_told(call: Mapping[str, JSON]) -> float | None:
    """What the call of a `model_call` event cost, in US dollars: as it says, else by its tokens and its `model`.

    None where neither tells, and for a model that the table does not have.
    """
    if "cost" in call:
        return amount(call["cost"])
    counts = [amount(call.get(key)) for key in ("in", "out", "cached")]
    name = call.get("model")
    models = (_listed(known, name) for known in price_table().prices.values()) if isinstance(name, str) else ()
    prices = next((found for found in models if found is not None), None)
    tokens = Usage(*(None if count is None else int(count) for count in counts))
    return cost_of(tokens, prices)


def is_charged(call: Mapping[str, JSON]) -> bool:
    """Whether the call counts in sums: one that failed and names no tokens does not."""
    return not (call.get("error") is True and call.get("in") is None)


def amount(value: JSON) -> float | None:
    """A number that can count something: none that is below 0, past a double's whole numbers, or not of JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        return None
    return value
