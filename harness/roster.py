"""Who the agents of a run are, how they work together, and which servers each was given: known before they do anything.

Refuses to know models, and what the agents did.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from proxy.spans import JSON

Architecture: TypeAlias = Literal["single_agent", "peer_to_peer", "supervisor_worker", "debate_critic"]
ARCHITECTURES: Mapping[str, Architecture] = {name: name for name in get_args(Architecture)}


@dataclass(frozen=True, slots=True)
class Roster:
    """`agents` are those that take part, in order, each with the servers that it can reach; never empty."""

    architecture: Architecture
    agents: Mapping[str, tuple[str, ...]]

    @property
    def decider(self) -> str:
        """Who decides (verdicts.md section 6): the last peer, else the first, be it supervisor, proposer or alone."""
        names = [*self.agents]
        return names[-1] if self.architecture == "peer_to_peer" else names[0]

    def reaching(self, server: str) -> frozenset[str]:
        """The agents that can reach a server."""
        return frozenset(name for name, servers in self.agents.items() if server in servers)

    def as_json(self) -> JSON:
        """`{architecture, agents: {NAME: [SERVER…]}}`."""
        return {
            "architecture": self.architecture,
            "agents": {name: [*servers] for name, servers in self.agents.items()},
        }


def read_roster(said: JSON) -> Roster | None:
    """The roster that `as_json` made; None of anything else."""
    match said:
        case {"architecture": str() as name, "agents": dict() as agents} if name in ARCHITECTURES and agents:
            pass
        case _:
            return None
    found: dict[str, tuple[str, ...]] = {}
    for agent, servers in agents.items():
        if not isinstance(servers, list):
            return None
        found[agent] = tuple(server for server in servers if isinstance(server, str))
    return Roster(ARCHITECTURES[name], found)
