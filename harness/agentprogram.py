"""Which agent ran, as a manifest may say it: the file that names it, and the files that its command is made of.

Refuses to show the command itself, which may hold a secret.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.agentfile import Agent, CommandAgent, ScriptedAgent
from harness.hiding import Hiding
from harness.modelagent import ModelAgent
from harness.scenario import Scenario

LARGEST = 64 * 1024 * 1024
"""Bytes of a file whose digest is taken."""


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A word of a command that is a file: its name without its folder, and its SHA-256, None where it is not read."""

    name: str
    sha256: str | None


def named_by(agent: Agent, scenario: Scenario) -> str:
    """Where the agent stands: the path of its file, of the scenario that has its command, or `--command`."""
    if agent.path is not None:
        return str(agent.path)
    return str(scenario.path) if agent is scenario.agent else "--command"


def program_files(agent: Agent, scenario: Scenario, hiding: Hiding) -> tuple[ProgramFile, ...]:
    """The words of a command that are files, in order: the program as it is found, then its arguments.

    Relative names are those of the folder that the command is run in.
    """
    match agent:
        case ScriptedAgent() | ModelAgent():
            return ()
        case CommandAgent(command=(program, *arguments)):
            folder = agent.path.parent if agent.path is not None else _folder(agent, scenario)
            found = shutil.which(program) if os.sep not in program else str(folder / program)
            paths = [Path(word) for word in [found] if word is not None] + [folder / word for word in arguments]
            return tuple(_file(path, hiding) for path in paths if _is_file(path))
        case _:
            return ()


def _folder(agent: Agent, scenario: Scenario) -> Path:
    return scenario.path.parent if agent is scenario.agent else Path.cwd()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # A prompt with U+0000, or longer than a name may be.
        return False


def _file(path: Path, hiding: Hiding) -> ProgramFile:
    name = hiding.text(path.name)
    try:
        return ProgramFile(name, hiding.file_digest(path.read_bytes()) if path.stat().st_size <= LARGEST else None)
    except OSError:
        return ProgramFile(name, None)
