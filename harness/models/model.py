"""What a model is to an agent: messages and tools in, text or tool calls and token counts out, or an error.

Refuses to know providers, scripts and agents.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool that the model may call; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Told:
    """What the agent is told: by the user, another agent, or its own loop."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call that the model asks for. `id` is the provider's, and its answer must bear it.

    `problem` says why the arguments cannot be read, where they cannot.
    """

    id: str
    tool: str
    arguments: dict[str, JSON]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came of a call. `text` is the result's text blocks, or the error's message."""

    use: ToolUse
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer. `input` is without `cached`, the part of the prompt that the provider had already.

    None is not known, which is not 0.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None

    @property
    def total(self) -> int:
        """All that is known, added up."""
        return sum(count for count in (self.input, self.output, self.cached) if count is not None)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model: `text`, which may be empty, and the calls that it asks for.

    `goal` is one that the model states with it. `original` is the answer in the library's own shape, which some
    providers want back whole (signed thoughts).
    """

    text: str
    uses: tuple[ToolUse, ...] = ()
    usage: Usage = field(default_factory=Usage)
    goal: str | None = None
    original: object | None = field(default=None, compare=False, repr=False)


Message: TypeAlias = Told | Reply | ToolAnswer


@dataclass(frozen=True, slots=True)
class Request:
    """All that a model is asked with.

    `task` is what the user asked of all agents together; `conversation` a number that is new each time an agent starts
    afresh, `trial` that of the trial. A provider's model is shown neither of the three.
    """

    agent: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...]
    task: str
    conversation: int
    trial: int = 1


class ModelError(ValueError):
    """A model call that failed. `again` says whether another attempt may do better, `after` in how many seconds.

    `status` is the HTTP status, None where none came.
    """

    def __init__(
        self, message: str, *, status: int | None = None, again: bool = False, after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.again, self.after = status, again, after


class Model(Protocol):
    """One model. `name` is what a manifest and the price table call it."""

    @property
    def name(self) -> str:
        """The provider's name of the model."""

    async def ask(self, request: Request) -> Reply:
        """One attempt, never repeated in secret. Raises ModelError."""

    async def close(self) -> None:
        """Let go of connections."""
