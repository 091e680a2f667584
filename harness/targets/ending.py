"""How an agent's run ended, for every target alike.

Refuses to know what made it end so.
"""

from dataclasses import dataclass

from harness.verdict import Status


@dataclass(frozen=True, slots=True)
class Ending:
    """`reason` is a sentence for a person, empty when the agent came to its own end.

    `seconds` is how long the agent ran, `first_ms` how long its first text took, where that was seen.
    `doubts` tell what happened to the record while the agent ran; `damage` which evidence cannot be read any more.
    """

    status: Status
    reason: str = ""
    doubts: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    seconds: float | None = None
    first_ms: float | None = None


class LimitError(ValueError):
    """The agent made more calls than `limits.tool_calls`."""
