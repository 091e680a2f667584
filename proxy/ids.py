"""Ids of requests, told apart as the protocol does (wire rule 3).

Refuses to know messages.
"""

from decimal import Decimal, InvalidOperation
from typing import Literal, TypeAlias

from proxy.spans import JSON

IdKey: TypeAlias = tuple[Literal["s"], str] | tuple[Literal["n"], int | Decimal]
"""An id by type and value: 1, "1" and true differ, 1 and 1.0 are one number (wire rule 3)."""


def id_key(value: JSON, text: str) -> IdKey | None:
    """The typed key of an id whose value and text are given; None when no answer can be told by it."""
    match value:
        case str():
            return ("s", value)
        case bool():
            return None
        case int():
            return ("n", value)
        case float():
            try:
                number = Decimal(text)
            except InvalidOperation:  # an exponent past what a Decimal holds
                return None
            return ("n", number) if number.is_finite() else None
        case _:
            return None
