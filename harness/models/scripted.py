"""A model that follows a script: deterministic, its answers made of what its own agent has seen, or wrong on purpose.

Refuses to know the architecture that it plays in.
"""

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field

from harness.models.model import ModelError, Reply, Request, Told, ToolOffer, ToolUse, Usage
from harness.models.script import WORD, Rule, Scalar, Script, When
from harness.models.seen import Seen, seen
from proxy.spans import JSON

AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""HTTP statuses after which another attempt may do better."""


@dataclass(slots=True)
class ScriptedModel:
    """Follows `script`. Chance is drawn from `seed`, trial, agent, rule and place in the conversation."""

    name: str
    script: Script
    seed: int = 0
    _fired: Counter[tuple[int, int]] = field(default_factory=Counter)
    _asked: Counter[int] = field(default_factory=Counter)

    async def ask(self, request: Request) -> Reply:
        """The answer of the first rule that fits. Raises ModelError where the rule says so, and where none fits."""
        self._asked[request.conversation] += 1
        known = seen(request)
        for place, rule in enumerate(self.script.rules):
            key = request.conversation, place
            spent = rule.at_most is not None and self._fired[key] >= rule.at_most
            if not spent and self._fits(rule.when, request, known, place):
                self._fired[key] += 1
                return _answer(rule, request, known, self._asked[request.conversation])
        raise ModelError(f"script {self.script.path.name}: no rule fits what {request.agent} has seen")

    async def close(self) -> None:
        """Nothing is open."""

    def _fits(self, when: When, request: Request, known: Seen, place: int) -> bool:
        offered = {tool.name for tool in request.tools}
        return (
            (not when.agent or request.agent in when.agent)
            and (when.offered is None or when.offered in offered)
            and (when.called is None or when.called in known.called)
            and (when.not_called is None or when.not_called not in known.called)
            and (when.said is None or re.search(when.said, known.text) is not None)
            and (when.not_said is None or re.search(when.not_said, known.text) is None)
            and all(_has(known, key, value) for key, value in when.knows.items())
            and not any(known.find(key) for key in when.not_known)
            and (when.chance >= 1 or self._draw(request, place) < when.chance)
        )

    def _draw(self, request: Request, place: int) -> float:
        """A number from 0 up to 1, the same each time for the same place of the same trial."""
        parts = (self.seed, request.trial, request.agent, place, self._asked[request.conversation])
        return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:7]) / 2**56


def _has(known: Seen, key: str, value: Scalar) -> bool:
    found = known.find(key)
    return found is not None and _spelled(found.value) == _spelled(value)


def _spelled(value: JSON) -> str:
    return value.casefold() if isinstance(value, str) else json.dumps(value)


def _answer(rule: Rule, request: Request, known: Seen, number: int) -> Reply:
    usage = Usage() if rule.usage is None else Usage(rule.usage.input, rule.usage.output, rule.usage.cached)
    if rule.fail is not None:
        again = rule.fail.status in AGAIN
        raise ModelError(rule.fail.message, status=rule.fail.status, again=again, after=rule.fail.retry_after)
    if rule.call is None:
        said = _filled(rule.say or "", known, request, rule.drop)
        return Reply(said if isinstance(said, str) else json.dumps(said), usage=usage, goal=rule.goal)
    arguments = _filled(rule.arguments, known, request, rule.drop)
    assert isinstance(arguments, dict)
    if rule.fill:
        offer = next((tool for tool in request.tools if tool.name == rule.call), None)
        arguments = {**(_form(offer, known, rule.drop) if offer is not None else {}), **arguments}
    uses = tuple(
        ToolUse(f"{request.conversation}-{number}-{place}", rule.call, arguments) for place in range(rule.times)
    )
    return Reply("", uses, usage, rule.goal)


def _form(offer: ToolOffer, known: Seen, drop: tuple[str, ...]) -> dict[str, JSON]:
    """Each parameter with the fact of its name, in the type that it wants; a free text takes everything."""
    properties = offer.parameters.get("properties")
    form: dict[str, JSON] = {}
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        fact = None if name in drop else known.find(name)
        wants_text = isinstance(schema, dict) and schema.get("type") == "string"
        if name in FREE:
            form[name] = known.everything(drop)
        elif fact is not None:
            form[name] = json.dumps(fact.value) if wants_text and not isinstance(fact.value, str) else fact.value
        elif wants_text:
            form[name] = ""
    return form


FREE = frozenset({"note", "instruction"})
"""Parameters of our own tools that take free text."""


def _filled(value: JSON, known: Seen, request: Request, drop: tuple[str, ...]) -> JSON:
    match value:
        case str():
            whole = WORD.fullmatch(value)
            if whole is not None:
                return _named(whole[1], known, request, drop)
            return WORD.sub(lambda found: _as_text(_named(found[1], known, request, drop)), value)
        case list():
            return [_filled(item, known, request, drop) for item in value]
        case dict():
            return {key: _filled(item, known, request, drop) for key, item in value.items()}
        case _:
            return value


def _as_text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _named(name: str, known: Seen, request: Request, drop: tuple[str, ...]) -> JSON:
    match name:
        case "everything":
            return known.everything(drop)
        case "task":
            if not any(isinstance(said, Told) and request.task in said.text for said in request.messages):
                raise ModelError(f"the script speaks of ${{task}}, which nobody has told {request.agent}")
            return request.task
        case "last":
            return known.last
        case _:
            fact = known.find(name)
            if fact is None:
                raise ModelError(f"the script speaks of ${{{name}}}, which {request.agent} has not seen")
            return fact.value
