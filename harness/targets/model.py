"""Runs agents of ours over a model, in the architecture that their file says.

Refuses to know what the architectures are, and how a model is reached.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from harness.architectures.asking import Asking, Seat
from harness.architectures.playing import play
from harness.architectures.stage import Stage
from harness.architectures.toolbox import CallBudget
from harness.modelagent import ModelAgent
from harness.models.making import make_model
from harness.models.model import ModelError
from harness.models.provided import key_variables
from harness.scenario import Limits
from harness.targets.child import StartError
from harness.targets.client import ClientError
from harness.targets.connecting import DirectConnections, PipedConnections
from harness.targets.context import Context
from harness.targets.conversation import Conversation
from harness.targets.deadline import Deadline, TimeUpError, TrialCancelledError
from harness.targets.ending import Ending, LimitError
from harness.targets.eventloop import Loop
from harness.targets.proxied import PreparationError, Prepared
from harness.targets.scripted import CUT
from harness.targets.streams import Streams
from proxy.spans import JSON

N = TypeVar("N", int, float)
CLOSING = 5.0
"""Seconds that the models' connections get to close."""
Connections: TypeAlias = PipedConnections | DirectConnections


@dataclass(frozen=True, slots=True)
class Given:
    """What the agents are given: the scenario's `input`, the ids of its servers, its limits, and the trial's number."""

    input: Mapping[str, JSON]
    servers: tuple[str, ...]
    limits: Limits
    trial: int

    @property
    def task(self) -> str:
        """What the user says."""
        said = self.input.get("user_message")
        return said if isinstance(said, str) else ""

    @property
    def text(self) -> str:
        """The same with what stands beside it, each with its source."""
        beside = self.input.get("context")
        parts = [self.task]
        for item in beside if isinstance(beside, list) else []:
            match item:
                case {"source": str() as source, "content": str() as content}:
                    parts.append(f"From {source}:\n{content}")
                case _:
                    pass
        return "\n\n".join(parts)


def run_model(
    agent: ModelAgent,
    prepared: Prepared,
    given: Given,
    context: Context,
    streams: Streams,
    private: Path,
    conversation: Conversation,
    deadline: Deadline,
) -> Ending:
    """Run the agents; every connection, and every process that was started, has ended when this returns."""
    loop = Loop(deadline)
    spans = streams.folder.spans
    redactor = conversation.hiding.redactor
    connections: Connections
    if agent.transport == "stdio":
        connections = PipedConnections(prepared, context, spans, private, streams, deadline, key_variables(agent))
    else:
        connections = DirectConnections(prepared, context, spans, loop, redactor, conversation.file.tap)
    try:
        return _play(agent, given, loop, connections, conversation)
    finally:
        try:
            connections.end()
        finally:
            loop.close()


def _play(agent: ModelAgent, given: Given, loop: Loop, connections: Connections, conversation: Conversation) -> Ending:
    crew = agent.crew(given.servers)
    seats: dict[str, Seat] = {}
    made: dict[str, Seat] = {}
    try:
        for name in crew:
            # All agents without a model of their own share one.
            own = name if name in agent.models else ""
            if own not in made:
                choice = agent.models.get(own, agent.model)
                made[own] = Seat(make_model(choice), choice)
            seats[name] = made[own]
        asking = Asking(
            seats=seats,
            loop=loop,
            tell=conversation.record,
            tokens=_least(given.limits.tokens, agent.tokens),
            cost=_least(given.limits.cost, agent.cost),
        )
        stage = Stage(
            agent=agent,
            crew=crew,
            task=given.task,
            given=given.text,
            trial=given.trial,
            asking=asking,
            budget=CallBudget(given.limits.tool_calls),
            connect=connections.connect,
            tell=conversation.record,
            report=conversation.report,
        )
        conversation.say(play(stage))
    except ModelError as error:
        return Ending("agent_crash", f"a model call failed: {str(error)[:CUT]}")
    except LimitError as error:
        return Ending("limit", str(error))
    except (ClientError, StartError, PreparationError) as error:
        return Ending("infra_error", str(error))
    except TimeUpError:
        return Ending("agent_timeout", "the agents did not end within limits.seconds")
    except TrialCancelledError as error:
        return Ending("cancelled", str(error))
    finally:
        loop.deadline = Deadline.after(CLOSING)
        for seat in made.values():
            with suppress(TimeUpError):
                loop.run(seat.model.close())
    return Ending("completed")


def _least(one: N | None, other: N | None) -> N | None:
    there = [limit for limit in (one, other) if limit is not None]
    return min(there, default=None)
