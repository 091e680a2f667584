"""What each kind of target can show at best, with its servers behind our proxy and without.

Refuses to know trials: what one really showed is in its report.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.observability import MEASURES, Measure, MeasureName, Seen

_O: Seen = "observed"
_D: Seen = "derived"
_N: Seen = "not observable"


@dataclass(frozen=True, slots=True)
class Sight:
    """A kind of target, whether its servers are behind the proxy, and what can be told of each measure."""

    target: str
    proxied: bool
    seen: Mapping[MeasureName, tuple[Seen, str]]

    @property
    def name(self) -> str:
        """Its name in reports; `alone` are those whose servers are not behind the proxy."""
        return self.target if self.proxied or self.target == "trace" else f"{self.target} alone"

    def measures(self) -> dict[str, Measure]:
        """The same in the shape of a trial's."""
        return {name: Measure(*self.seen[name]) for name in MEASURES}


_WIRE = (_O, "calls cross the proxy")
_DARK = (_N, "no call crosses the proxy, and the target reports none")
_TOLD = (_D, "of the calls that the target reports")
_STATE = (_O, "of calls, and of databases where they are known")
_TIMED = (_O, "from its start to its end")
_STREAMED = (_O, "from its start to its first text and to its end")
_NO_TOKENS = (_N, "it tells of no calls of a model")
_TOLD_TOKENS = (_D, "where it reports model_call events with their tokens")
_NO_PRICE = (_N, "it tells of no calls of a model with a price")
_TOLD_PRICE = (_D, "where it reports model_call events with their cost, or with a model that the price table has")
_NO_HANDOVERS = (_N, "what goes on inside is not seen")
_TOLD_HANDOVERS = (_D, "where it reports handoff and delegation events")


def _sight(
    target: str,
    proxied: bool,
    calls: tuple[Seen, str],
    success: tuple[Seen, str],
    latency: tuple[Seen, str] = _TIMED,
    tokens: tuple[Seen, str] = _TOLD_TOKENS,
    cost: tuple[Seen, str] = _TOLD_PRICE,
    handovers: tuple[Seen, str] = _TOLD_HANDOVERS,
) -> Sight:
    return Sight(
        target,
        proxied,
        {
            "task_success": success,
            "tool_correctness": calls,
            "efficiency": calls,
            "latency": latency,
            "trajectory": calls,
            "tokens": tokens,
            "cost": cost,
            "handovers": handovers,
        },
    )


_ANSWER = (_N, "state and an answer alone pass nothing")
_BLACK = (_NO_TOKENS, _NO_PRICE, _NO_HANDOVERS)
_PROFILED = "where a profile reads them from what it prints"
_NAMED = (_D, "where all its tokens are of one model, which is named and which the price table has")

SIGHTS: tuple[Sight, ...] = (
    _sight("scripted", True, _WIRE, _STATE, _TIMED, _NO_TOKENS, _NO_PRICE, (_O, "it is one agent")),
    _sight("command", True, _WIRE, _STATE, _TIMED, (_D, _PROFILED), _NAMED, _NO_HANDOVERS),
    _sight("http", False, _TOLD, (_D, "of what the target reports, where the scenario has no servers")),
    _sight("http", True, _WIRE, _STATE),
    _sight("chat", False, _DARK, _ANSWER, _STREAMED, (_D, "where the answer has OpenAI's `usage`"), *_BLACK[1:]),
    _sight("chat", True, _WIRE, _STATE, _STREAMED, (_D, "where the answer has OpenAI's `usage`"), *_BLACK[1:]),
    _sight("python", True, _WIRE, _STATE),
    _sight("openai-agents", True, _WIRE, _STATE, _TIMED, (_D, "as the SDK counts them"), _NAMED),
    _sight("langchain", True, _WIRE, _STATE, _TIMED, (_D, "as its messages count them"), _NAMED, _NO_HANDOVERS),
    _sight("pydantic-ai", True, _WIRE, _STATE, _TIMED, (_D, "as its run counts them"), _NAMED, _NO_HANDOVERS),
    _sight("trace", False, (_D, "of the calls that the file has"), (_D, "of the file"), (_N, "nothing is run")),
)
"""A row for each kind, worst sight first."""
