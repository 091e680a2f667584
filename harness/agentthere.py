"""Whether what an agent file names is there to be run, found without running any of it.

Refuses to know how an agent is run. What cannot be told for sure counts as there: the trial says the rest.
"""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from harness.agentfile import Agent, CommandAgent
from harness.places import is_file, is_folder, is_there
from harness.targetfile import Called

_INTERPRETER = re.compile(r"(python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|bash|sh|zsh|php)(\.exe)?")
_ALONE = re.compile(r"-[BEIOPSsuvqbdix]+")
"""Options of Python's that take no word with them."""
_DYNAMIC = frozenset({"globals", "exec", "setattr", "__getattr__", "vars"})
"""Names by which a module may get others that stand nowhere in it."""


def not_there(agent: Agent, folder: Path) -> tuple[str, str] | None:
    """The field of the agent that names what is missing, and what to do; None where nothing is known to be.

    `folder` is the one that a command is run in.
    """
    match agent:
        case Called(path=Path() as path):
            said = _missing(agent, path.parent)
            return None if said is None else (agent.framework, said)
        case CommandAgent(command=command, profile=None):
            script = _script(command)
            if script is None or is_there(folder / script):
                return None
            return "command", f"there is no file {script!r} for {command[0]} in {folder.absolute()}, where it is run"
        case _:
            return None


def _script(command: tuple[str, ...]) -> str | None:
    """The script that an interpreter is given, None where nobody knows which word that is."""
    program, *words = command
    if _INTERPRETER.fullmatch(Path(program).name) is None:
        return None
    while words and _ALONE.fullmatch(words[0]) is not None:
        words = words[1:]
    known = words and words[0] and not words[0].startswith("-") and not any(sign in words[0] for sign in "{}:\0")
    return words[0] if known and "." in words[0] else None


def _missing(agent: Called, folder: Path) -> str | None:
    module, _, name = agent.function.partition(":")
    first = module.partition(".")[0]
    if not (is_file(folder / f"{first}.py") or is_folder(folder / first)):
        # Nothing is imported for the name of a module without a dot.
        if agent.interpreter == sys.executable and first not in sys.modules and find_spec(first) is None:
            return f"there is no module {first!r} in {folder.absolute()}, nor among the packages of {agent.interpreter}"
        return None
    place = folder.joinpath(*module.split("."))
    source = next((file for file in (place.with_suffix(".py"), place / "__init__.py") if is_file(file)), None)
    if source is None:
        # Parts of a package may lie elsewhere.
        return None if "." in module or is_folder(place) else f"there is no module {module!r} in {folder.absolute()}"
    try:
        names = set(_bound(ast.parse(source.read_bytes())))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    wanted = name.partition(".")[0]
    if wanted in names or names & _DYNAMIC:
        return None
    return f"{source} has no {wanted!r}; write MODULE:FUNCTION"


def _bound(tree: ast.AST) -> Iterator[str]:
    """Every name that a module may have in the end, and some more."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name):
                yield name
            case ast.alias(name="*"):
                yield "globals"
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                yield name
            case _:
                pass
