"""Who a recorded fact belongs to: run, scenario, trial and agent, and how a proxy is told (record.md section 1).

Refuses to know what is recorded.
"""

import json
import secrets
from dataclasses import dataclass, field

from proxy.spans import JSON, Attribute
from proxy.vocabulary import AGENT_ID, RUN_ID, SCENARIO_ID, TRIAL

DEFAULT_AGENT = "agent"
"""The agent's id where a scenario has one agent and names none."""


@dataclass(frozen=True, slots=True)
class Context:
    """One agent in one trial, and the run's context for its proxies.

    `trace_id` and `span_id` are those of its root span; `redact_key` is 32 bytes in hex, `secrets` are values.
    """

    run_id: str
    scenario_id: str
    trial: int
    agent_id: str = DEFAULT_AGENT
    redact_key: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    trace_id: str = field(default_factory=lambda: secrets.token_hex(16))
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))

    def attributes(self) -> dict[str, Attribute]:
        """The attributes that stand on every span of this agent."""
        return {
            RUN_ID: self.run_id,
            SCENARIO_ID: self.scenario_id,
            TRIAL: self.trial,
            AGENT_ID: self.agent_id,
        }

    def as_json(self, spans: str) -> dict[str, JSON]:
        """The document that `wiretrap proxy --context` reads; `spans` is the folder of the span files."""
        return {
            "run_id": self.run_id,
            "scenario_id": self.scenario_id,
            "trial": self.trial,
            "agent_id": self.agent_id,
            "traceparent": f"00-{self.trace_id}-{self.span_id}-01",
            "redact_key": self.redact_key,
            "secrets": list(self.secrets),
            "spans": spans,
        }

    def as_text(self, spans: str) -> str:
        """The same as JSON text."""
        return json.dumps(self.as_json(spans), indent=2) + "\n"
