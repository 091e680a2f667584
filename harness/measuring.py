"""The numbers of one trial, from its trace: calls, tokens, cost, and who had each fact.

Refuses to know verdicts. What the trace does not say is None, never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.evidence import Evidence
from harness.knowing import Knowing
from harness.models.prices import amount, cost_told, is_charged
from harness.roster import Roster
from harness.scenario import Scenario
from harness.trace import Event, Trace


@dataclass(frozen=True, slots=True)
class Had:
    """One fact in one trial: the agents that ever read it, those that had it in time, and the one that decided by it.

    In time is before what the fact decides was done; a critic that was shown it, to judge a draft by, had it too.
    """

    fact: str
    readers: tuple[str, ...]
    knowers: tuple[str, ...]
    decider: str | None

    @property
    def decider_knew(self) -> bool | None:
        """Whether the deciding agent had it in time; None where nobody can tell who decided."""
        return None if self.decider is None else self.decider in self.knowers


@dataclass(frozen=True, slots=True)
class Measured:
    """What one trial took. `tokens_in` leaves out those from a cache; `cost` is in US dollars."""

    calls: int | None = None
    model_calls: int | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    facts: tuple[Had, ...] = ()

    @property
    def tokens(self) -> int | None:
        """All that is known to have been used; None where nothing is."""
        known = [one for one in (self.tokens_in, self.tokens_cached, self.tokens_out) if one is not None]
        return sum(known) if known else None


def measure(scenario: Scenario, trace: Trace, roster: Roster | None = None) -> Measured:
    """The numbers of a trial of the scenario by the agents of `roster`, where these are known.

    A model call that failed and names no tokens is left out of the sums.
    """
    asked = [event for event in trace.events if event.type == "model_call"]
    charged = [event for event in asked if is_charged(event.fields)]
    costs = [cost for event in charged if (cost := cost_told(event.fields)) is not None]
    evidence = Evidence(
        trace,
        completed=True,
        servers=tuple(scenario.servers),
        user_message=scenario.user_message,
        roster=roster,
    )
    return Measured(
        calls=None if trace.coverage.tool_calls == "none" else len(trace.tool_calls),
        model_calls=len(asked) or None,
        tokens_in=_sum(charged, "in"),
        tokens_cached=_sum(charged, "cached"),
        tokens_out=_sum(charged, "out"),
        cost=sum(costs) if charged and len(costs) == len(charged) else None,
        facts=tuple(_had(Knowing(fact, evidence, scenario.labels.get("architecture"))) for fact in scenario.facts),
    )


def _had(knowing: Knowing) -> Had:
    return Had(knowing.fact.id, tuple(sorted(knowing.readers)), tuple(sorted(knowing.in_time())), knowing.decider())


def _sum(events: Sequence[Event], name: str) -> int | None:
    numbers = _numbers(events, name)
    return None if numbers is None else int(sum(numbers))


def _numbers(events: Sequence[Event], name: str) -> list[float] | None:
    """The number of each event; None of no event, and where any of them does not say it."""
    found = [value for event in events if (value := amount(event.fields.get(name))) is not None]
    return found if events and len(found) == len(events) else None
