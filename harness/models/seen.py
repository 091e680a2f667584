"""What a scripted model has seen so far, as keys and values: of tool results, of its own calls, of what it was told.

Refuses to know rules.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.models.model import Reply, Request, Told, ToolAnswer
from proxy.spans import JSON

_PIECE = re.compile(r"(?:^|[\s{(*-])[\"']?([A-Za-z_]\w*)[\"']?\s*[:=](.+)$")
_BREAK = re.compile(r"[\n;,]")


@dataclass(frozen=True, slots=True)
class Fact:
    """One key with its value; `tool` is the one whose result or arguments held it, None in a text."""

    key: str
    value: JSON
    tool: str | None = None

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"{self.key} = {value}"


@dataclass(frozen=True, slots=True)
class Seen:
    """`facts` in the order in which they came; `text` is all that was said to the agent or answered, less the task.

    `last` is the newest of it.
    """

    facts: tuple[Fact, ...]
    text: str
    called: tuple[str, ...]
    last: str = ""

    def find(self, name: str) -> Fact | None:
        """The first fact of that name, which is KEY or TOOL.KEY."""
        tool, _, key = name.rpartition(".")
        return next((fact for fact in self.facts if fact.key == key and (not tool or fact.tool == tool)), None)

    def everything(self, without: tuple[str, ...]) -> str:
        """Every fact, a line each, but those with the keys of `without`."""
        return "\n".join(dict.fromkeys(str(fact) for fact in self.facts if fact.key not in without))


def seen(request: Request) -> Seen:
    """What the agent of a request has seen."""
    facts: list[Fact] = []
    texts: list[str] = []
    called: list[str] = []
    for message in request.messages:
        match message:
            case Told(text):
                rest = text.replace(request.task, " ") if request.task else text
                texts.append(rest)
                facts += _of_text(rest)
            case Reply(uses=uses):
                for use in uses:
                    called.append(use.tool)
                    facts += _of_json(use.arguments, use.tool)
            case ToolAnswer(use=use, text=text):
                texts.append(text)
                facts += _of_result(text, use.tool)
    return Seen(tuple(facts), "\n".join(texts), tuple(called), texts[-1] if texts else "")


def _of_result(text: str, tool: str) -> list[Fact]:
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return _of_text(text)
    return list(_of_json(value, tool)) if isinstance(value, dict | list) else []


def _of_json(value: JSON, tool: str) -> Iterator[Fact]:
    match value:
        case dict():
            for key, item in value.items():
                if isinstance(item, dict | list):
                    yield from _of_json(item, tool)
                else:
                    yield Fact(key, item, tool)
        case list():
            for item in value:
                yield from _of_json(item, tool)
        case _:
            pass


def _of_text(text: str) -> list[Fact]:
    found = (_PIECE.search(piece) for piece in _BREAK.split(text))
    values = ((match[1], match[2].strip().rstrip("}) \t")) for match in found if match is not None)
    return [Fact(key, _value(value)) for key, value in values if value]


def _value(text: str) -> JSON:
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict | list) else value
