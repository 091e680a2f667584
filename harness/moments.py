"""Times as the trace writes them. Refuses to know clocks: it is given nanoseconds."""

from datetime import UTC, datetime
from functools import lru_cache

from harness.facts import ConvertError


@lru_cache(maxsize=64)
def _second(second: int) -> str:
    try:
        return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError) as error:
        raise ConvertError(f"{second} seconds since 1970 is no time of the years 1 to 9999") from error


def rfc3339(nanoseconds: int) -> str:
    """Unix nanoseconds as RFC 3339 in UTC with nine digits (record.md section 5). Raises ConvertError."""
    second, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_second(second)}.{rest:09d}Z"
