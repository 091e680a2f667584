"""What all agents of a trial share, and the plain loop of one agent: ask the model, carry out its calls, ask again.

Refuses to know which architecture the agent is part of.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from harness.architectures.asking import Asking
from harness.architectures.toolbox import CallBudget, OwnTool, Toolbox, open_toolbox
from harness.modelagent import ModelAgent
from harness.models.model import Message, Request, Told, ToolAnswer
from harness.targets.client import Client
from harness.targets.ending import LimitError
from proxy.spans import JSON


@dataclass(slots=True)
class Stage:
    """`crew` is every agent with its servers; `connect` opens the connections of one agent to some of its servers.

    `task` is what the user said, `given` the same with what the scenario gives beside it. `tell` takes down an
    event of our own loop, `report` one that is an agent's own word.
    """

    agent: ModelAgent
    crew: Mapping[str, tuple[str, ...]]
    task: str
    given: str
    trial: int
    asking: Asking
    budget: CallBudget
    connect: Callable[[str, Sequence[str]], AbstractContextManager[Mapping[str, Client]]]
    tell: Callable[[str, dict[str, JSON]], None]
    report: Callable[[str, dict[str, JSON]], None]
    _conversations: int = 0

    @contextmanager
    def enter(self, name: str, system: str, own: tuple[OwnTool, ...] = ()) -> "Iterator[LoopAgent]":
        """One agent that starts afresh, with connections of its own, which end with it."""
        self._conversations += 1
        with self.connect(name, self.crew[name]) as clients:
            box = open_toolbox(clients, own, self.budget)
            yield LoopAgent(self, name, system, box, self._conversations)


@dataclass(slots=True)
class LoopAgent:
    """One agent with all that it has seen. `done` once a tool of the architecture ended its part."""

    stage: Stage
    name: str
    system: str
    box: Toolbox
    conversation: int
    done: bool = False
    messages: list[Message] = field(default_factory=list)

    def work(self, told: str) -> str:
        """Tell it something, and let it work until it answers; its answer, empty when it was done without one.

        Raises ModelError, LimitError and ClientError.
        """
        self.messages.append(Told(told))
        for _ in range(self.stage.agent.rounds):
            reply = self.stage.asking.ask(self._request())
            self.messages.append(reply)
            if reply.goal is not None:
                self.stage.report("goal", {"id": reply.goal, "agent": self.name})
            if not reply.uses:
                return reply.text
            for use in reply.uses:
                outcome = self.box.use(use)
                self.messages.append(ToolAnswer(use, outcome.text, outcome.is_error))
                self.done |= outcome.done
            if self.done:
                return reply.text
        raise LimitError(f"{self.name} took {self.stage.agent.rounds} answers of its model; rounds is that many")

    def _request(self) -> Request:
        return Request(
            agent=self.name,
            system=self.system,
            messages=tuple(self.messages),
            tools=tuple(self.box.offers),
            task=self.stage.task,
            conversation=self.conversation,
            trial=self.stage.trial,
        )
