"""What a file looks like that was given as another kind: its own name, and what to do with it.

Refuses to know how any kind is read.
"""

from typing import Literal

from harness.seedfile import is_seed
from proxy.spans import JSON

Given = Literal["scenario", "agent"]

SCENARIO_FIELDS = frozenset({"id", "title", "category", "input", "prompt", "assertions", "servers"})
AGENT_FIELDS = frozenset({"steps", "command", "profile", "transport", "model", "architecture"})
POLICY_FIELDS = frozenset({"rules", "default", "mode", "client_requests"})
SWEEP_FIELDS = frozenset({"tasks", "agents"})
"""Both are needed in a sweep's file, and none of the others has any."""

UP_FIELDS = frozenset(
    {"run", "spans", "otlp", "health", "secrets", "trace_context", "policy", "approvals", "grants", "servers"}
)


def is_up_file(data: JSON) -> bool:
    """Whether a file's value is one of `wiretrap up`: servers, none of them a fixture, and nothing of a scenario."""
    if not isinstance(data, dict) or not set(data) <= UP_FIELDS:
        return False
    servers = data.get("servers")
    return isinstance(servers, dict) and not any("fixture" in one for one in servers.values() if isinstance(one, dict))


def looks_like(data: JSON, given: Given) -> str | None:
    """One sentence where a file's value is no `given` and looks like something else; None where that is unclear."""
    if not isinstance(data, dict) or not data:
        return None
    keys = set(data)
    if given == "scenario" and is_up_file(data):
        return "this looks like a file of `wiretrap up`, not like a scenario; give it to that"
    own = SCENARIO_FIELDS if given == "scenario" else AGENT_FIELDS
    if keys & own:
        return None if given == "scenario" else _scenario_as_agent(keys)
    a = "a scenario" if given == "scenario" else "an agent file"
    if "mcpServers" in keys:
        return (
            f"this looks like the MCP configuration of a client, not like {a}; a scenario names its servers under "
            "`servers` (docs/scenario.md)"
        )
    if keys >= SWEEP_FIELDS:
        return f"this looks like a sweep, not like {a}; give it to `wiretrap sweep`"
    if given == "scenario" and keys & AGENT_FIELDS:
        return f"this looks like an agent file, not like {a}; give it with --agent, or name it under `agent`"
    if given == "agent" and keys & SCENARIO_FIELDS:
        return f"this looks like a scenario, not like {a}; give it to `wiretrap run` as a PATH"
    if keys & POLICY_FIELDS or keys == {"policy"}:
        return f"this looks like a policy, not like {a}; name it in a scenario as `policy: {{file: NAME}}`"
    if is_seed(data):
        return f"this looks like a seed, not like {a}; name it in a scenario as `seed: NAME` of a fixture"
    return None


def _scenario_as_agent(keys: set[str]) -> str | None:
    if len(keys & SCENARIO_FIELDS) > len(keys & AGENT_FIELDS):
        return "this looks like a scenario, not like an agent file; give it to `wiretrap run` as a PATH"
    return None
