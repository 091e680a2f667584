"""Asks models on behalf of agents: every attempt is an event, failed ones are tried again in sight, limits are kept.

Refuses to know what the answers mean.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from harness.modelagent import ModelChoice
from harness.models.model import Model, ModelError, Reply, Request, Usage
from harness.models.prices import cost_of, prices_of
from harness.targets.deadline import TimeUpError, TrialCancelledError
from harness.targets.ending import LimitError
from proxy.spans import JSON

T = TypeVar("T")
LONGEST_WAIT = 60.0
"""Seconds; a provider that wants a longer pause is not asked again."""
LONGEST_REASON = 1000
"""Characters of an error that an event keeps; a provider may send a whole page."""
FIRST_WAIT = 0.5
"""Seconds before the second attempt where nobody says how long; twice as long before each next."""


class Turning(Protocol):
    """What runs a coroutine to its end, within the trial's time."""

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Raises TimeUpError and TrialCancelledError."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The model of one agent, how it is asked, and what limits all agents together."""

    model: Model
    choice: ModelChoice


@dataclass(slots=True)
class Asking:
    """`tell` takes down an event. `tokens` and `cost` limit what all calls together take; None is no limit.

    `tokens_used` counts what is known; `cost_used` is None as soon as one call's cost is not known.
    """

    seats: Mapping[str, Seat]
    loop: Turning
    tell: Callable[[str, dict[str, JSON]], None]
    tokens: int | None = None
    cost: float | None = None
    pause: Callable[[float], Coroutine[None, None, None]] = asyncio.sleep
    tokens_used: int = 0
    cost_used: float | None = 0.0
    _known_cost: float = field(default=0.0)

    def ask(self, request: Request) -> Reply:
        """The reply of the agent's model. Raises ModelError after the last attempt, and LimitError."""
        seat = self.seats[request.agent]
        attempt = 1
        while True:
            began = time.monotonic()
            try:
                reply = self.loop.run(seat.model.ask(request))
            except (ModelError, TimeUpError, TrialCancelledError) as error:
                self._failed(request.agent, seat, attempt, began, error)
                if not isinstance(error, ModelError) or attempt >= seat.choice.attempts or not error.again:
                    raise
                wait = FIRST_WAIT * 2 ** (attempt - 1) if error.after is None else error.after
                if wait > LONGEST_WAIT:
                    raise
                self.loop.run(self.pause(wait))
                attempt += 1
                continue
            self._took(request.agent, seat, attempt, began, reply.usage)
            return reply

    def _failed(self, agent: str, seat: Seat, attempt: int, began: float, error: ValueError) -> None:
        status = error.status if isinstance(error, ModelError) else None
        said = {"error": True, "status": status, "reason": str(error)[:LONGEST_REASON]}
        self.tell("model_call", {**_call(agent, seat, attempt, began, Usage()), "cost": None, **said})

    def _took(self, agent: str, seat: Seat, attempt: int, began: float, usage: Usage) -> None:
        cost = cost_of(usage, prices_of(seat.choice))
        self.tell("model_call", {**_call(agent, seat, attempt, began, usage), "cost": cost, "error": False})
        self.tokens_used += usage.total
        self._known_cost += cost or 0.0
        self.cost_used = None if cost is None or self.cost_used is None else self.cost_used + cost
        if self.tokens is not None and self.tokens_used > self.tokens:
            raise LimitError(f"the agents took {self.tokens_used} tokens; limits.tokens is {self.tokens}")
        if self.cost is not None and self._known_cost > self.cost:
            raise LimitError(f"the agents' model calls cost {self._known_cost:.6f}; limits.cost is {self.cost:g}")


def _call(agent: str, seat: Seat, attempt: int, began: float, usage: Usage) -> dict[str, JSON]:
    return {
        "agent": agent,
        "model": seat.model.name,
        "attempt": attempt,
        "in": usage.input,
        "out": usage.output,
        "cached": usage.cached,
        "duration_ms": round((time.monotonic() - began) * 1000, 3),
    }
