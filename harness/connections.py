"""Tells the connections that the harness set up from those that somebody made up, bent or hid.

Refuses to know files. It is told what the spans say, and what the servers of ours wrote down when they were started.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.targets.context import Context
from harness.targets.proxied import Upstream
from proxy import vocabulary as v
from proxy.spans import Attribute, Span

_Values: TypeAlias = "tuple[Attribute | None, ...]"
STRANGE = "that the harness did not set up"


@dataclass(slots=True)
class _Seen:
    """One connection as its spans tell it. `answered`: the server behind it has answered something."""

    common: list["_Values"] = field(default_factory=list)
    opened: list["_Values"] = field(default_factory=list)
    answered: bool = False


_COMMON = (v.RUN_ID, v.SCENARIO_ID, v.TRIAL, v.AGENT_ID, v.SERVER_ID, v.SERVER_TRUST)
_MADE_OF = (v.COMMAND_SHA256, v.POLICY_SHA256)


class RollCall:
    """Takes down every connection that the spans of a trial's folder speak of, whichever run they name."""

    def __init__(self, context: Context, upstreams: Sequence[Upstream], agents: Iterable[str] | None = None) -> None:
        """`agents` are the ids that were handed out, where it is not that of the context alone."""
        self._context = context
        self._agents = frozenset((context.agent_id,) if agents is None else agents)
        self._upstreams = {upstream.id: upstream for upstream in upstreams}
        self._seen: dict[str, _Seen] = {}

    def watch(self, spans: Iterable[Span]) -> Iterator[Span]:
        """The spans as they are."""
        for span in spans:
            connection = span.attributes.get(v.CONNECTION)
            if span.scope == v.SCOPE and isinstance(connection, str):
                self._note(connection, span.attributes)
            yield span

    def _note(self, connection: str, attributes: Mapping[str, Attribute]) -> None:
        seen = self._seen.setdefault(connection, _Seen())
        common = tuple(attributes.get(key) for key in _COMMON)
        # Two that differ are wrong already, and somebody may have made up very many.
        if len(seen.common) < 2 and common not in seen.common:
            seen.common.append(common)
        match attributes.get(v.SPAN_KIND):
            case "connection_opened":
                seen.opened.append(tuple(attributes.get(key) for key in _MADE_OF))
            case "request":
                ours = attributes.get(v.REFUSED_BY_US) is True or attributes.get(v.DIRECTION) == "server_to_client"
                seen.answered |= v.RESULT_MONO in attributes and not ours
            case _:
                pass

    def doubts(self, started: Mapping[str, Sequence[str | None]]) -> tuple[str, ...]:
        """What is wrong with the connections, in sentences, once all spans were watched.

        `started` has for each server with a journal the connection of each of its starts, None for one without.
        """
        found = [doubt for seen in self._seen.values() for doubt in self._strange(seen)]
        for server, connections in started.items():
            found += self._unlike(server, connections)
        return tuple(dict.fromkeys(found))

    def _strange(self, seen: _Seen) -> Iterator[str]:
        """What does not fit what was handed out."""
        if len(seen.common) > 1:
            yield f"the spans of a connection {STRANGE} name several runs, agents or servers"
            return
        *whose, agent, server, trust = seen.common[0]
        context = self._context
        if whose != [context.run_id, context.scenario_id, context.trial] or agent not in self._agents:
            yield f"there is a connection {STRANGE}: it names another run, trial or agent"
            return
        upstream = self._upstreams.get(server) if isinstance(server, str) else None
        if upstream is None:
            yield f"there is a connection {STRANGE}: it names a server that the scenario has not"
        elif trust != upstream.server.trust:
            yield f"there is a connection to {server} {STRANGE}: with other options"
        elif len(seen.opened) != 1:
            yield f"there is a connection to {server} {STRANGE}: it has {len(seen.opened)} spans connection.opened"
        elif seen.opened[0][0] != upstream.command_sha256:
            yield f"there is a connection to {server} {STRANGE}: with another server behind the proxy"
        elif (seen.opened[0][1] or "") != upstream.policy_sha256:
            yield f"there is a connection to {server} {STRANGE}: with another policy or none"

    def _unlike(self, server: str, started: Sequence[str | None]) -> Iterator[str]:
        """Where the starts that a server wrote down and the connections of the record differ."""
        known = {name for name, seen in self._seen.items() if seen.opened and seen.common[0][4] == server}
        if None in started:
            yield f"{server} was started without the proxy"
        named = [name for name in started if name is not None]
        if len(set(named)) != len(named):
            yield f"{server} was started again, past the proxy, under the name of a connection"
        if not known.issuperset(named):
            yield f"{server} was started for a connection of which the record says nothing"
        if any(self._seen[name].answered for name in known.difference(named)):
            yield f"a connection to {server} was answered by something else than that server"
