"""How long a call may wait for an approval, and an approval for its call (verdicts.md section 4).

Refuses to know calls, clocks and who approves.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from proxy.fieldreading import FieldReading
from proxy.problem import Path, describe
from proxy.spans import JSON

_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
WAIT, LASTS = 60.0, 600.0
"""Seconds, where a rule names none."""
LONGEST = 7 * 24 * 3600.0
"""Seconds; who waits longer waits for nobody."""


class DurationError(ValueError):
    """A text that is no duration; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What an `approve` rule says: seconds that a call waits, and seconds that a grant lasts."""

    wait: float = WAIT
    lasts: float = LASTS


def read_duration(value: JSON) -> float:
    """Seconds of a duration such as `500ms`, `60s`, `10m` or `1h`. Raises DurationError."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    seconds = float(found[1]) * _SECONDS[found[2]] if found is not None else 0.0
    if not 0 < seconds <= LONGEST:
        raise DurationError(f"expected a duration such as 500ms, 60s, 10m or 1h, a week at most, not {describe(value)}")
    return seconds


def read_hold(reading: FieldReading, path: Path, rule: Mapping[str, JSON]) -> Hold | None:
    """What the map of a rule says of waiting; None for a rule that is no `approve`. What is wrong is noted."""
    seconds = {"wait": WAIT, "grant_lasts": LASTS}
    for key in seconds:
        if key not in rule:
            continue
        if "approve" not in rule:
            reading.wrong((*path, key), "only an approve waits for a grant")
            continue
        try:
            seconds[key] = read_duration(rule[key])
        except DurationError as error:
            reading.wrong((*path, key), str(error))
    return Hold(seconds["wait"], seconds["grant_lasts"]) if "approve" in rule else None
