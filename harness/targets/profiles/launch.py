"""How an agent of a known kind is started, and what it told, in words that all kinds share.

Refuses to know the kinds, and how a process is run.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Start:
    """How the agent starts the proxy in front of one server; `environment` is put over the agent's own.

    `url` is where the proxy listens already, "" where the agent starts it.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""

    def as_config(self) -> dict[str, JSON]:
        """The entry under `mcpServers`."""
        if self.url:
            return {"type": "http", "url": self.url}
        return {"command": self.command[0], "args": list(self.command[1:]), "env": dict(self.environment)}


@dataclass(frozen=True, slots=True)
class Given:
    """What an agent is started with: its servers by id, and the `mcpServers` file that has the same.

    `folder` is the trial's private one, for files of the agent's kind; `ours` is the environment that it would get.
    A command that comes after the words of `apart` is started out of the agent's reach (harness.targets.apart).
    """

    servers: Mapping[str, Start]
    mcp_config: Path
    folder: Path
    ours: Mapping[str, str]
    apart: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """What starting takes. `arguments` come after the words of the command; the task comes on standard input.

    `environment` is put over the one that it gets. `files` are to be written before, `links` made where the file that
    they lead to is there; both by path.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)
    links: Mapping[Path, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of the model, as the agent reports them, None where it does not say.

    `fresh` is input that did not come from a cache (what was written to one included), `cached` input that did.
    """

    fresh: int | None = None
    cached: int | None = None
    out: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent's output says: its messages in order, its tokens, and whether the model or the run failed.

    The tokens are of all its calls of models together, and `model` is the one that they all went to, None where there
    were several or it does not say. All of it is the agent's own word. `read` is false where nothing in the output is
    of its kind.
    """

    said: tuple[str, ...] = ()
    tokens: Tokens | None = None
    failed: bool = False
    read: bool = True
    model: str | None = None


def events(output: str) -> Iterator[dict[str, JSON]]:
    """The JSON objects among the lines; agents write warnings of their own between them."""
    # JSON may hold other ends of lines than this, such as U+2028, as they are.
    for line in output.split("\n"):
        if not line.lstrip().startswith("{"):
            continue
        try:
            event: JSON = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def named_model(words: Sequence[str]) -> str | None:
    """The model that a command line names, as all three agents take it: `--model NAME`, `--model=NAME`, `-m NAME`."""
    for place, word in enumerate(words):
        if word in ("--model", "-m"):
            return words[place + 1] if place + 1 < len(words) else None
        if word.startswith("--model="):
            return word.removeprefix("--model=")
    return None


def count(value: JSON) -> int | None:
    """A number of tokens, None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def total(*parts: int | None) -> int | None:
    """The sum of what is known, None where nothing is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def without(whole: int | None, part: int | None) -> int | None:
    """The rest of a whole; a part that is not told takes nothing off, and one that is too big leaves 0."""
    return None if whole is None else max(whole - (part or 0), 0)
