"""Opens connections for several agents of one trial, each under its own id: over stdio, or in this process.

Refuses to know what the agents are.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from harness.processes import Process, descendants, end_descendants
from harness.runfolder import write_new
from harness.targets.child import ChildChannel, start_child
from harness.targets.client import Client, ServerEndedError
from harness.targets.context import Context
from harness.targets.deadline import Deadline, TimeUpError
from harness.targets.eventloop import Loop
from harness.targets.fronts import fronts
from harness.targets.overhttp import HttpChannel
from harness.targets.piped import CLOSING, HASTE, close_channels
from harness.targets.proxied import Prepared, Upstream, told_of
from harness.targets.streams import Streams
from proxy.redact import Redactor
from proxy.spanfile import Tap

CLIENT_NAME = "wiretrap-model-agent"
Connect: TypeAlias = Callable[[str, Sequence[str]], AbstractContextManager[Mapping[str, Client]]]


@dataclass(slots=True)
class PipedConnections:
    """A proxy process for each connection. Call `end` when no agent works any more.

    `withheld` are variables that no server gets, unless the scenario gives it one: the keys of our models.
    """

    prepared: Prepared
    context: Context
    spans: Path
    private: Path
    streams: Streams
    deadline: Deadline
    withheld: frozenset[str]
    _files: dict[str, Path] = field(default_factory=dict)
    _channels: list[ChildChannel] = field(default_factory=list)
    _spare: tuple[Process, ...] = field(default_factory=lambda: tuple(descendants(os.getpid())))

    @contextmanager
    def connect(self, agent: str, servers: Sequence[str]) -> Iterator[Mapping[str, Client]]:
        """Clients to these servers, started at once. Raises StartError and PreparationError."""
        channels: dict[str, ChildChannel | HttpChannel] = {}
        mine = replace(self.prepared, upstreams=tuple(self._of(agent, servers)))
        with fronts(mine, self.streams.errors, self.deadline.cancel) as reachable:
            clean = False
            try:
                for upstream in reachable.upstreams:
                    channels[upstream.id] = self._open(upstream)
                yield {name: Client(name, channel, CLIENT_NAME) for name, channel in channels.items()}
                clean = True
            finally:
                close_channels(list(channels.values()), CLOSING if clean else HASTE)

    def _open(self, upstream: Upstream) -> ChildChannel | HttpChannel:
        if upstream.front:
            return HttpChannel(upstream.id, upstream.front, self.deadline)
        ours = {name: value for name, value in os.environ.items() if name not in self.withheld}
        environment = {**ours, **upstream.environment}
        channel = start_child(upstream.id, upstream.command, environment, self.streams.errors, self.deadline)
        self._channels.append(channel)
        return channel

    def _of(self, agent: str, servers: Sequence[str]) -> Iterator[Upstream]:
        file = self._files.get(agent)
        if file is None:
            context = replace(self.context, agent_id=agent)
            file = write_new(self.private / f"context-{agent}.json", context.as_text(str(self.spans.absolute())))
            self._files[agent] = file
        for upstream in self.prepared.upstreams:
            if upstream.id in servers:
                yield told_of(upstream, self.prepared.context, file)

    def end(self) -> None:
        """End every process that was started, by its id, and put what they said into the run folder."""
        end_descendants(os.getpid(), spare=self._spare)
        for channel in self._channels:
            channel.process.wait()
        self.streams.publish()


@dataclass(slots=True)
class DirectConnections:
    """Fixtures in this process, on `loop`. `tap` is given every span line that was written."""

    prepared: Prepared
    context: Context
    spans: Path
    loop: Loop
    redactor: Redactor | None
    tap: Tap | None

    @contextmanager
    def connect(self, agent: str, servers: Sequence[str]) -> Iterator[Mapping[str, Client]]:
        """Clients to these servers. Raises PreparationError."""
        # Only here is the MCP SDK needed, and it takes a second to import.
        from harness.targets.direct import CLOSING, open_upstream  # noqa: PLC0415  (loaded only where needed)

        context = replace(self.context, agent_id=agent)
        with ExitStack() as stack:
            channels = {
                upstream.id: open_upstream(upstream, context, self.spans, self.loop, stack, self.redactor, self.tap)
                for upstream in self.prepared.upstreams
                if upstream.id in servers
            }
            try:
                yield {name: Client(name, channel, CLIENT_NAME) for name, channel in channels.items()}
            finally:
                within = self.loop.deadline
                self.loop.deadline = Deadline.after(CLOSING)
                for channel in channels.values():
                    # A server that will not end is cancelled with its loop.
                    with suppress(TimeUpError, ServerEndedError):
                        channel.close()
                self.loop.deadline = within

    def end(self) -> None:
        """Nothing is left."""
