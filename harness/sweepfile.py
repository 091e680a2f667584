"""The file of `wiretrap sweep`: which agents do which tasks, over which models, how often, and what it may take.

Refuses to know how trials are run. Everything that is wrong is found before anything is started.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field, JsonValue, StringConstraints

from harness.intake import Entry, Intake, open_document
from harness.scenariofile import MOST_TRIALS, Name
from harness.selection import Arm
from proxy.problem import Problem, ProblemError
from proxy.spans import JSON

ArmName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]
"""Without a dot, so that ARM.SCENARIO is read in one way."""


class SweepFileError(ProblemError):
    """A file that no sweep can be run from; `problems` has everything that is wrong."""


class SweepLimitsEntry(Entry):
    """What all trials of the sweep may take together."""

    tokens: int | None = Field(default=None, ge=1)
    cost: float | None = Field(default=None, gt=0)


class SweepEntry(Entry):
    """A file of `wiretrap sweep`."""

    tasks: Annotated[list[Name], Field(min_length=1)]
    agents: Annotated[dict[ArmName, Name | dict[str, Name]], Field(min_length=1)]
    models: dict[ArmName, dict[str, JsonValue]] = Field(default_factory=dict)
    trials: int = Field(default=1, ge=1, le=MOST_TRIALS)
    limits: SweepLimitsEntry = Field(default_factory=SweepLimitsEntry)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep as its file says it, with all paths found from the file's folder.

    `agents` have their files, `models` what takes the place of `model` in them. `tokens` and `cost` (US dollars) are
    None where they are not limited.
    """

    path: Path
    tasks: tuple[str, ...]
    agents: tuple[Arm, ...]
    models: Mapping[str, Mapping[str, JSON]]
    trials: int
    tokens: int | None
    cost: float | None

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms: the agents, or each agent with each model as AGENT-MODEL."""
        if not self.models:
            return tuple(agent.name for agent in self.agents)
        return tuple(f"{agent.name}-{model}" for agent in self.agents for model in self.models)


def load_sweep(path: Path) -> Sweep:
    """The sweep of a file. Raises SweepFileError with everything that is wrong with the file itself."""
    problems: list[Problem] = []
    document = open_document(path, problems)
    if document is None:
        raise SweepFileError(problems)
    intake = Intake(document)
    entry = intake.read(SweepEntry, document.data, ())
    if entry is None:
        raise SweepFileError(intake.problems)
    folder = path.absolute().parent
    agents = tuple(_arm(name, named, folder) for name, named in entry.agents.items())
    models = {name: _placed(dict(model), folder) for name, model in entry.models.items()}
    tasks = tuple(str(folder / task) for task in entry.tasks)
    sweep = Sweep(path, tasks, agents, models, entry.trials, entry.limits.tokens, entry.limits.cost)
    if len(set(sweep.arms)) < len(sweep.arms):
        intake.wrong(("models",), "two pairs of agent and model have one name, AGENT-MODEL; rename one of them")
        raise SweepFileError(intake.problems)
    return sweep


def _arm(name: str, named: str | Mapping[str, str], folder: Path) -> Arm:
    if isinstance(named, str):
        return Arm(name, str(folder / named))
    return Arm(name, by_task={task: str(folder / file) for task, file in named.items()})


def _found_from(folder: Path, agent: dict[str, JSON]) -> dict[str, JSON]:
    """The agent file of that folder with the files that it names found from anywhere: it is written elsewhere."""
    models = agent.get("models")
    if not isinstance(models, dict):
        return agent
    found = {name: _placed(one, folder) if isinstance(one, dict) else one for name, one in models.items()}
    return {**agent, "models": found}


def _placed(model: dict[str, JSON], folder: Path) -> dict[str, JSON]:
    """The model with the path of its script, which is that folder's, found from anywhere."""
    script = model.get("script")
    return {**model, "script": str(folder / script)} if isinstance(script, str) else model


def with_models(sweep: Sweep, folder: Path) -> tuple[Arm, ...]:
    """The arms of a sweep. With models, each pair's agent file is written into `folder`, which is made.

    Raises SweepFileError for an agent file that cannot be read or has no `model`, and OSError.
    """
    if not sweep.models:
        return sweep.agents
    problems: list[Problem] = []
    arms: list[Arm] = []
    folder.mkdir(mode=0o700, exist_ok=True)
    for agent in sweep.agents:
        for name, model in sweep.models.items():
            arm = f"{agent.name}-{name}"
            file = None if agent.file is None else _write(agent.file, model, folder / f"{arm}.yaml", problems)
            by_task = {
                task: _write(own, model, folder / f"{arm}.{task}.yaml", problems) for task, own in agent.by_task.items()
            }
            arms.append(Arm(arm, file, by_task))
    if problems:
        raise SweepFileError(dict.fromkeys(problems))
    return tuple(arms)


def _write(file: str, model: Mapping[str, JSON], place: Path, problems: list[Problem]) -> str:
    document = open_document(Path(file), problems)
    match document.data if document is not None else None:
        case dict() as agent if "model" in agent:
            place.unlink(missing_ok=True)
            place.touch(mode=0o600)
            # JSON is YAML.
            made = {**_found_from(Path(file).absolute().parent, agent), "model": dict(model)}
            place.write_text(json.dumps(made, indent=2), encoding="utf-8")
        case _ if document is not None:
            said = "the agent has no model that one of the sweep's could replace; leave `models` out"
            problems.append(Problem(file, None, "model", said))
    return str(place)
