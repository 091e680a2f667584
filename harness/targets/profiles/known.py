"""The kinds of agents that are known by name, and the module of each.

Refuses to know what stands in them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.targets.profiles import claude_code, codex, gemini_cli
from harness.targets.profiles.launch import Given, Launch, Told

ProfileName: TypeAlias = Literal["claude-code", "codex", "gemini-cli"]


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind: the name of its program, how it is started, and how its standard output is read."""

    program: str
    launch: Callable[[Given], Launch]
    read: Callable[[str], Told]


PROFILES: Mapping[ProfileName, Profile] = {
    "claude-code": Profile(claude_code.PROGRAM, claude_code.launch, claude_code.read),
    "codex": Profile(codex.PROGRAM, codex.launch, codex.read),
    "gemini-cli": Profile(gemini_cli.PROGRAM, gemini_cli.launch, gemini_cli.read),
}
