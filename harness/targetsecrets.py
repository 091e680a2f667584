"""Which values an agent that is asked over HTTP is given as secrets: in headers, its URL's query, its request.

Refuses to know how they are hidden. The rule of names is that of variables (docs/redaction.md).
"""

from collections.abc import Iterator, Mapping

from harness.targetfile import PROMPT, SCENARIO, SERVERS, Remote
from proxy.heard import CREDENTIALS, secrets_of
from proxy.secretvalues import named_secrets
from proxy.spans import JSON
from proxy.webaddress import query_values, read_url

_FILLED = (PROMPT, SCENARIO, SERVERS)
_NAMELESS = (*(name.decode() for name in CREDENTIALS), "set-cookie")
"""Headers that are secret whatever the rule says of their names."""


def target_secrets(agent: Remote, ours: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The secret values, by what a warning may call them; `ours` is the environment that `header_env` names."""
    plain = {name: value for name, value in agent.headers.items() if _secret(name)}
    named = {name: ours[variable] for name, variable in agent.header_env.items() if variable in ours}
    for name, value in {**plain, **named}.items():
        for part in secrets_of([(name.lower().encode(), value.encode("latin-1", "replace"))]):
            yield f"the header {name}", part
    for name, value in query_values(read_url(agent.url).query).items():
        if _secret(name):
            yield f"{name} of the URL", value
    for name, value in _members(agent.request):
        if _secret(name) and not any(word in value for word in _FILLED):
            yield f"{name} of the request", value


def _secret(name: str) -> bool:
    return name.lower() in _NAMELESS or bool(named_secrets((), {name: "value"}, {}))


def _members(value: JSON) -> Iterator[tuple[str, str]]:
    """Every text that has a name in a JSON value."""
    match value:
        case list():
            for item in value:
                yield from _members(item)
        case dict():
            for name, item in value.items():
                if isinstance(item, str):
                    yield name, item
                else:
                    yield from _members(item)
        case _:
            pass
