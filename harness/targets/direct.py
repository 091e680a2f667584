"""Runs a scripted agent against fixtures in this process: no process is started, and the proxy's core is all the same.

Refuses to know what the steps are.
"""

from contextlib import ExitStack, suppress
from pathlib import Path

from harness.agentfile import ScriptedAgent
from harness.scenario import FixtureServer
from harness.targets.client import Client, ServerEndedError
from harness.targets.context import Context
from harness.targets.conversation import Conversation
from harness.targets.deadline import Deadline, TimeUpError
from harness.targets.ending import Ending
from harness.targets.eventloop import Loop
from harness.targets.fixtures import build_fixture
from harness.targets.inprocess import InProcessChannel
from harness.targets.proxied import PreparationError, Prepared, Upstream
from harness.targets.scripted import follow
from proxy import __version__
from proxy.faults import FaultPlan, load_faults
from proxy.grants import load_grants
from proxy.ledger import random_hex
from proxy.policy import load_policy
from proxy.record import Identity
from proxy.redact import Redactor
from proxy.relay import Relay
from proxy.spanfile import SpanFile, Tap
from proxy.waiting import Waiting

CLOSING = 10.0
"""Seconds that the servers get to end."""


def run_direct(
    agent: ScriptedAgent,
    prepared: Prepared,
    context: Context,
    spans: Path,
    conversation: Conversation,
    deadline: Deadline,
    most_calls: int | None,
    tap: Tap | None = None,
) -> Ending:
    """Run the agent; every server has ended and every span file is closed when this returns.

    `tap` is given every span line that was written.
    """
    with ExitStack() as stack:
        loop = Loop(deadline)
        stack.callback(loop.close)
        channels: dict[str, InProcessChannel] = {}
        for upstream in prepared.upstreams:
            redactor = conversation.hiding.redactor
            channels[upstream.id] = open_upstream(upstream, context, spans, loop, stack, redactor, tap)
        clients = {server_id: Client(server_id, channel) for server_id, channel in channels.items()}
        ending = follow(agent.steps, clients, conversation, most_calls)
        loop.deadline = Deadline.after(CLOSING)
        for channel in channels.values():
            # A server that will not end is cancelled with its loop.
            with suppress(TimeUpError, ServerEndedError):
                channel.close()
    return ending


def open_upstream(
    upstream: Upstream,
    context: Context,
    spans: Path,
    loop: Loop,
    stack: ExitStack,
    redactor: Redactor | None,
    tap: Tap | None,
) -> InProcessChannel:
    """A channel to one server through the proxy's core; the server ends with `stack`. Raises PreparationError."""
    match upstream.server, upstream.database:
        case FixtureServer(fixture=fixture), Path() as database:
            connection = random_hex(16)
            server = stack.enter_context(build_fixture(fixture, database, connection))
        case _:
            raise PreparationError(f"server {upstream.id}: only a fixture can be run in process")
    identity = Identity(
        server_id=upstream.id,
        trust=upstream.server.trust,
        transport="in_process",
        connection=connection,
        run_id=context.run_id,
        scenario_id=context.scenario_id,
        trial=context.trial,
        agent_id=context.agent_id,
        trace_id=context.trace_id,
        parent_id=context.span_id,
        command_sha256=upstream.command_sha256,
        policy_sha256=upstream.policy_sha256,
    )
    policy = None if upstream.policy is None else load_policy(str(upstream.policy))
    file = SpanFile.create(spans, upstream.id)
    file.tap = tap
    faults = None if upstream.faults is None else FaultPlan(load_faults(str(upstream.faults)))
    relay = Relay(identity, policy, __version__, file, redactor, faults=faults)
    channel = InProcessChannel(upstream.id, server, relay, loop)
    if policy is not None and policy.holds:
        grants = None if upstream.grants is None else load_grants(str(upstream.grants))
        relay.hold_calls(Waiting(grants), channel.deliver)
    channel.start()
    return channel
