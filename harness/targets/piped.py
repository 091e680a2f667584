"""Runs a scripted agent through a real proxy process for each server: over stdio, or over HTTP where it listens.

Refuses to know what the steps are.
"""

import os
from contextlib import suppress

from harness.agentfile import ScriptedAgent
from harness.processes import descendants, end_descendants
from harness.targets.child import ChildChannel, StartError, start_child
from harness.targets.client import Client, ClientError
from harness.targets.conversation import Conversation
from harness.targets.deadline import Deadline, TimeUpError
from harness.targets.ending import Ending
from harness.targets.overhttp import HttpChannel
from harness.targets.proxied import Prepared
from harness.targets.scripted import follow
from harness.targets.streams import Streams

CLOSING = 10.0
"""Seconds that the proxies get to end after their input has; a server that will not is ended by its proxy."""
HASTE = 1.0
"""The same where the agent did not come to its own end."""
PATIENT_WITH = frozenset({"completed", "agent_crash", "limit"})


def run_piped(
    agent: ScriptedAgent,
    prepared: Prepared,
    streams: Streams,
    conversation: Conversation,
    deadline: Deadline,
    most_calls: int | None,
) -> Ending:
    """Run the agent; every process that was started has ended when this returns."""
    spare = descendants(os.getpid())
    channels: dict[str, ChildChannel | HttpChannel] = {}
    ending = Ending("harness_error", "the steps could not be followed")
    try:
        # All start before the first is spoken to: they import at the same time.
        for upstream in prepared.upstreams:
            if upstream.front:
                channels[upstream.id] = HttpChannel(upstream.id, upstream.front, deadline)
                continue
            environment = {**os.environ, **upstream.environment}
            channels[upstream.id] = start_child(upstream.id, upstream.command, environment, streams.errors, deadline)
        clients = {server_id: Client(server_id, channel) for server_id, channel in channels.items()}
        ending = follow(agent.steps, clients, conversation, most_calls)
    except StartError as error:
        ending = Ending("infra_error", str(error))
    finally:
        # Once the time is up or the trial is to stop, what does not end at once has had its chance.
        close_channels(list(channels.values()), CLOSING if ending.status in PATIENT_WITH else HASTE)
        end_descendants(os.getpid(), spare=spare)
        for channel in channels.values():
            if isinstance(channel, ChildChannel):
                channel.process.wait()
        streams.publish()
    return ending


def close_channels(channels: list[ChildChannel | HttpChannel], seconds: float) -> None:
    """End the input of each, and give each time to end by itself."""
    closing = Deadline.after(seconds)
    # One after the other, so that the record of the same steps has the same order each time.
    for channel in channels:
        channel.deadline = closing
        # Who will not end by itself is ended by its id afterwards.
        with suppress(TimeUpError, ClientError):
            channel.close()
        channel.abandon()
