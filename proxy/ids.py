"""Ids of requests, told apart as the protocol does (wire rule 3), and taken for each other as clients do.

Refuses to know messages.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from json import dumps
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


def id_text(key: IdKey) -> str:
    """The JSON text of an id that was read, where the wire's own is not at hand."""
    return dumps(key[1]) if isinstance(key[1], str) else str(key[1])


_SPACE = "\ufeff\t\n\v\f\r\u2028\u2029"
"""What JavaScript trims of a text before it makes a number of it, beside the blanks of Unicode."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,99}(?:\.[0-9]{0,99})?|\.[0-9]{1,99})(?:[eE][+-]?[0-9]{1,9})?")
_OTHER_BASE = re.compile(r"0(?:[xX][0-9a-fA-F]{1,99}|[oO][0-7]{1,99}|[bB][01]{1,99})")


def answered_key(key: IdKey, waiting: Collection[IdKey]) -> IdKey | None:
    """Which of the requests that wait is answered under this id; None where no client would take it for one of them.

    The very same one first. Else the SDKs of Python and TypeScript make a number of a text: they take an answer to "1",
    or to " 01 ", for the one to 1, and Python's takes that to 1 for the one to "1".
    """
    if key in waiting or not waiting:
        return key if waiting else None
    meant = set(_numbers(key))
    if not meant:
        return None
    for number in meant:
        if ("n", number) in waiting:
            return ("n", number)
    return next((one for one in waiting if one[0] == "s" and not meant.isdisjoint(_numbers(one))), None)


def _numbers(key: IdKey) -> Iterator[int | Decimal]:
    """The number that an id is, or what Python's `int` and JavaScript's `Number` make of it."""
    value = key[1]
    if not isinstance(value, str):
        yield value
        return
    with suppress(ValueError):
        yield int(value)
    text = value.strip().strip(_SPACE).strip()
    if not text:
        yield 0
    elif _DECIMAL.fullmatch(text):
        yield Decimal(text)
    elif _OTHER_BASE.fullmatch(text):
        yield int(text, 0)
