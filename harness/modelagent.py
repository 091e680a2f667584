"""The agent file of a model agent: which model, in which architecture, and who of it has which servers.

Refuses to know how a model is asked and how the agents work together.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from harness.intake import Entry, Intake
from harness.models.script import Script, read_script
from harness.roster import Architecture, Roster
from proxy.problem import Path as FieldPath
from proxy.problem import Problem
from proxy.secretvalues import secret_environment
from proxy.spans import JSON
from proxy.webaddress import read_url

Provider: TypeAlias = Literal["scripted", "anthropic", "openai", "gemini"]
Handoff: TypeAlias = Literal["rigid", "open"]

FORM = ("customer_id", "name", "tier", "status")
"""Fields of a rigid hand-over, where the agent file names none."""
_FIRST = {"peer_to_peer": ("crm_peer", "ticketing_peer"), "supervisor_worker": ("crm_worker", "ticketing_worker")}
"""Who there is, where the agent file does not say: one with the server `crm`, one with all others."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens: of input, output, and input that the provider had in its cache."""

    input: float
    output: float
    cached: float


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model and how it is asked. `key` is the variable with the key, `attempts` how often a call is tried."""

    provider: Provider
    name: str
    script: Script | None = None
    seed: int = 0
    base_url: str | None = None
    key: str | None = None
    streaming: bool = False
    temperature: float | None = None
    max_tokens: int = 4096
    attempts: int = 4
    prices: Prices | None = None


@dataclass(frozen=True, slots=True)
class ModelAgent:
    """`models` are those of single agents, by name; `staff` is who has which servers, empty for the default.

    `rounds` is how many answers of a model one agent may take each time it is set to work, `revisions` how often a
    draft goes back. `tokens` and `cost` are limits beside those of the scenario.
    """

    path: Path
    model: ModelChoice
    architecture: Architecture = "single_agent"
    models: Mapping[str, ModelChoice] = field(default_factory=dict)
    handoff: Handoff = "open"
    form: tuple[str, ...] = FORM
    staff: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rounds: int = 16
    revisions: int = 1
    tokens: int | None = None
    cost: float | None = None
    transport: Literal["stdio", "in_process"] = "stdio"

    @property
    def target(self) -> str:
        """Its name in reports."""
        return f"model ({self.architecture})"

    @property
    def scripted(self) -> bool:
        """Whether no model of a provider takes part."""
        return all(choice.provider == "scripted" for choice in (self.model, *self.models.values()))

    @property
    def files(self) -> tuple[Path, ...]:
        """The agent file and the scripts that it names."""
        scripts = [choice.script for choice in (self.model, *self.models.values())]
        return tuple(dict.fromkeys([self.path, *(script.path for script in scripts if script is not None)]))

    @property
    def model_name(self) -> str:
        """The names of all models of it."""
        return ", ".join(dict.fromkeys(choice.name for choice in (self.model, *self.models.values())))

    def crew(self, servers: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Every agent, in order, with the servers that it has of `servers`."""
        everything = tuple(servers)
        match self.architecture:
            case "single_agent":
                return {"agent": everything}
            case "debate_critic":
                return {"proposer": everything, "critic": ()}
            case "peer_to_peer" | "supervisor_worker":
                supervisor: dict[str, tuple[str, ...]] = (
                    {"supervisor": ()} if self.architecture == "supervisor_worker" else {}
                )
                return {**supervisor, **(self.staff or self._two(everything))}

    def roster(self, servers: Collection[str]) -> Roster:
        """The agents that take part: without revisions no draft goes to the critic."""
        idle = {"critic"} if self.revisions == 0 else set()
        return Roster(self.architecture, {name: ids for name, ids in self.crew(servers).items() if name not in idle})

    def _two(self, servers: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        first, second = _FIRST[self.architecture]
        mine = tuple(server for server in servers if server == "crm")
        return {first: mine, second: tuple(server for server in servers if server != "crm")}


def _url(text: str) -> str:
    read_url(text)
    return text


class PricesEntry(Entry):
    """`prices` of a model."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float = Field(ge=0)


class ModelEntry(Entry):
    """`model`, and each of `models`."""

    provider: Provider
    name: str | None = Field(default=None, min_length=1)
    script: str | None = Field(default=None, min_length=1)
    seed: int = 0
    base_url: Annotated[str, AfterValidator(_url), Field(json_schema_extra={"pattern": "^https?://"})] | None = None
    key: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    streaming: bool = False
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int = Field(default=4096, ge=1)
    attempts: int = Field(default=4, ge=1, le=10)
    prices: PricesEntry | None = None


class AgentLimitsEntry(Entry):
    """`limits` of a model agent."""

    tokens: int | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0)


class ModelAgentEntry(Entry):
    """A model agent's file."""

    model: ModelEntry
    architecture: Architecture = "single_agent"
    models: dict[str, ModelEntry] = Field(default_factory=dict)
    handoff: Handoff = "open"
    form: list[str] = Field(default_factory=lambda: list(FORM), min_length=1)
    agents: dict[str, list[str]] = Field(default_factory=dict)
    rounds: int = Field(default=16, ge=1, le=1000)
    revisions: int = Field(default=1, ge=0, le=100)
    limits: AgentLimitsEntry = Field(default_factory=AgentLimitsEntry)
    transport: Literal["stdio", "in_process"] = "stdio"


def read_model_agent(
    intake: Intake,
    data: JSON,
    path: Path,
    servers: Collection[str] | None,
    problems: list[Problem],
    within: FieldPath = (),
) -> ModelAgent | None:
    """The model agent of a map; what is wrong is noted, what is wrong in a script is added to `problems`.

    `path` is the file that it stands in, and `within` leads to it there. `servers` are the ids of the scenario's, None
    where they are not known.
    """
    entry = intake.read(ModelAgentEntry, data, within)
    if entry is None:
        return None
    model = _choice(intake, entry.model, (*within, "model"), path, problems)
    models = {
        name: choice
        for name, one in entry.models.items()
        if (choice := _choice(intake, one, (*within, "models", name), path, problems)) is not None
    }
    if model is None:
        return None
    agent = ModelAgent(
        path=path,
        model=model,
        architecture=entry.architecture,
        models=models,
        handoff=entry.handoff,
        form=tuple(entry.form),
        staff={name: tuple(ids) for name, ids in entry.agents.items()},
        rounds=entry.rounds,
        revisions=entry.revisions,
        tokens=entry.limits.tokens,
        cost=entry.limits.cost,
        transport=entry.transport,
    )
    _check(intake, agent, servers, within)
    return agent


def _choice(
    intake: Intake, entry: ModelEntry, where: FieldPath, path: Path, problems: list[Problem]
) -> ModelChoice | None:
    script = None
    if entry.provider == "scripted":
        if entry.script is None:
            intake.wrong((*where, "script"), "a scripted model needs the file of its script")
            return None
        script = read_script(path.parent / entry.script, problems)
        if script is None:
            return None
    elif entry.script is not None:
        intake.wrong((*where, "script"), "only a scripted model has a script")
    elif entry.key is not None and not secret_environment({entry.key: "value"}):
        said = "a variable with key, token, secret, passw, credential or auth in its name is kept out of the record"
        intake.wrong((*where, "key"), f"{entry.key} would be recorded as it is: {said}")
    elif entry.name is None:
        intake.wrong((*where, "name"), f"name the model, as {entry.provider} calls it")
    prices = entry.prices
    return ModelChoice(
        provider=entry.provider,
        name=entry.name or ("" if script is None else script.path.stem),
        script=script,
        seed=entry.seed,
        base_url=entry.base_url,
        key=entry.key,
        streaming=entry.streaming,
        temperature=entry.temperature,
        max_tokens=entry.max_tokens,
        attempts=entry.attempts,
        prices=None if prices is None else Prices(prices.input, prices.output, prices.cached),
    )


def _check(intake: Intake, agent: ModelAgent, servers: Collection[str] | None, within: FieldPath) -> None:
    several = agent.architecture in _FIRST
    if agent.staff and not several:
        intake.wrong(
            (
                *within,
                "agents",
            ),
            f"only {' and '.join(_FIRST)} have agents to name",
        )
    if agent.architecture == "peer_to_peer" and len(agent.staff) == 1:
        intake.wrong(
            (
                *within,
                "agents",
            ),
            "a peer needs another one to hand over to",
        )
    for name, ids in agent.staff.items():
        if _NAME.fullmatch(name) is None or name == "supervisor":
            intake.wrong((*within, "agents", name), "use letters, digits, '_' and '-'; the supervisor is there anyway")
        for place, server in enumerate(ids):
            if servers is not None and server not in servers:
                known = ", ".join(servers) or "none"
                said = f"the scenario has no server {server!r}; its servers are: {known}"
                intake.wrong((*within, "agents", name, place), said)
    if several and not agent.staff and servers is not None and not ("crm" in servers and len(servers) > 1):
        said = "without a server crm and another one nobody can tell who has which; name them: agents: {NAME: [SERVER]}"
        intake.wrong(
            (
                *within,
                "agents",
            ),
            said,
        )
    for name in agent.models:
        crew = agent.crew(servers or ())
        if name not in crew:
            intake.wrong((*within, "models", name), f"there is no agent of that name; there are {', '.join(crew)}")
    for place, name in enumerate(agent.form):
        if _NAME.fullmatch(name) is None:
            intake.wrong((*within, "form", place), f"{name!r} is no name of a field; use letters, digits, '_' and '-'")
