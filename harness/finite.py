"""Numbers that stood in JSON, where Python reads NaN and Infinity too.

Refuses to know what is counted.
"""

from math import isfinite


def finite(value: object) -> float | None:
    """A number as a float; None for NaN, the infinite, what is too great for a float, and what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None
