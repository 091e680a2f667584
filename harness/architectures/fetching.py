"""The tools by which a model takes what is no tool of a server's: its resources and its prompts.

Refuses to know models, and what lies between a client and its server.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness.models.model import ToolOffer
from harness.targets.client import Answer, Client
from proxy.spans import JSON

MOST = 50
"""Resources or prompts that a description names."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """One such tool of one server. `take` is given arguments that fit the offer's parameters."""

    server: str
    offer: ToolOffer
    take: Callable[[Mapping[str, JSON]], Answer]


def fetching_tools(client: Client) -> Iterator[Fetching]:
    """What an initialised client's server can be asked for beside calls. Raises ClientError."""
    if resources := client.resource_definitions():
        uris: list[JSON] = [resource["uri"] for resource in resources]
        said = f"Read a resource of the system {client.server}. There are: {_named(uris)}."
        yield Fetching(
            client.server,
            ToolOffer("read_resource", said, _schema({"uri": {"type": "string"}}, "uri")),
            lambda given: client.read_resource(str(given.get("uri"))),
        )
    if prompts := client.prompt_definitions():
        said = f"Get a prompt of the system {client.server}. There are: {'; '.join(map(_described, prompts[:MOST]))}."
        texts: JSON = {"type": "object", "additionalProperties": {"type": "string"}}
        yield Fetching(
            client.server,
            ToolOffer("get_prompt", said, _schema({"name": {"type": "string"}, "arguments": texts}, "name")),
            lambda given: client.get_prompt(str(given.get("name")), _texts(given.get("arguments"))),
        )


def _schema(properties: dict[str, JSON], needed: str) -> Mapping[str, JSON]:
    return {"type": "object", "properties": properties, "required": [needed], "additionalProperties": False}


def _named(names: list[JSON]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(map(str, names[:MOST])) + more


def _described(prompt: Mapping[str, JSON]) -> str:
    arguments = prompt.get("arguments")
    listed = arguments if isinstance(arguments, list) else []
    names = ", ".join(str(one.get("name")) for one in listed if isinstance(one, dict))
    return f"{prompt['name']}({names})"


def _texts(given: JSON) -> dict[str, JSON]:
    """Arguments as MCP gives them to prompts, texts."""
    found = given if isinstance(given, dict) else {}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}
