"""References of a scripted agent's steps to the answers of earlier ones: `${profile.json.tier}`.

Refuses to know how a step is carried out.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from proxy.problem import Path, describe
from proxy.spans import JSON

_TOKEN = re.compile(r"(\$\$\{)|\$\{([^{}]*)\}|(\$\{)")
_INSIDE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)\.(json|text|is_error)((?:\.[^.\[\]\s]+|\[[0-9]{1,9}\])*)")
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""What `as` may call an answer."""


class StepReferenceError(ValueError):
    """A reference that cannot be read, or that leads nowhere in the answers there are."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a step's answer is to later steps. `json` counts only where `has_json` is true."""

    text: str
    is_error: bool
    json: JSON = None
    has_json: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """`${name.part.path}` as written in `source`."""

    source: str
    name: str
    part: Literal["json", "text", "is_error"]
    path: Path


_Part: TypeAlias = "str | Reference"


def bind_result(result: JSON) -> Binding:
    """The binding of a result: structuredContent, else the text as JSON; its texts joined by newlines."""
    if not isinstance(result, dict):
        return Binding("", True)
    text = "\n".join(texts_of_result(result))
    is_error = result.get("isError") is True
    structured = result.get("structuredContent")
    if structured is not None:
        return Binding(text, is_error, structured, True)
    try:
        return Binding(text, is_error, json.loads(text), True)
    except (ValueError, RecursionError):
        return Binding(text, is_error)


def texts_of_result(result: Mapping[str, JSON]) -> Iterator[str]:
    """The texts that a result carries: of a tool's blocks, a resource's contents, or a prompt's messages."""
    for member in ("content", "contents", "messages"):
        found = result.get(member)
        for item in found if isinstance(found, list) else []:
            match item:
                case {"type": "text", "text": str() as text} if member == "content":
                    yield text
                case {"text": str() as text} if member == "contents":
                    yield text
                case {"content": {"type": "text", "text": str() as text}} if member == "messages":
                    yield text
                case {"content": {"type": "resource", "resource": {"text": str() as text}}} if member == "messages":
                    yield text
                case _:
                    pass


def bind_error(message: str) -> Binding:
    """The binding of a call that a JSON-RPC error answered."""
    return Binding(message, True)


def _parse(text: str) -> Iterator[_Part]:
    end = 0
    for token in _TOKEN.finditer(text):
        if token.start() > end:
            yield text[end : token.start()]
        end = token.end()
        if token[1]:
            yield "${"
            continue
        inside = _INSIDE.fullmatch(token[2]) if token[2] is not None else None
        if inside is None or (inside[2] != "json" and inside[3]):
            raise StepReferenceError(
                f"{token[0]!r} is no reference; write ${{NAME.json.field[0]}}, ${{NAME.text}} or ${{NAME.is_error}}, "
                "and $${ for the signs themselves"
            )
        path: Path = tuple(key or int(place) for key, place in _STEP.findall(inside[3]))
        part: Literal["json", "text", "is_error"] = (
            "json" if inside[2] == "json" else "text" if inside[2] == "text" else "is_error"
        )
        yield Reference(token[0], inside[1], part, path)
    if end < len(text):
        yield text[end:]


def _texts(value: JSON, path: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case str():
            yield path, value
        case list():
            for place, item in enumerate(value):
                yield from _texts(item, (*path, place))
        case dict():
            for key, item in value.items():
                yield from _texts(item, (*path, key))
        case _:
            pass


def check_references(value: JSON, names: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """What is wrong with the references in `value`: the path of each text, and a sentence. `names` are those known."""
    known = tuple(names)
    for path, text in _texts(value, ()):
        try:
            for part in _parse(text):
                if isinstance(part, Reference) and part.name not in known:
                    earlier = f"known here: {', '.join(known)}" if known else "no earlier step has a name"
                    yield path, f"{part.source!r} names no earlier step's `as`; {earlier}"
        except StepReferenceError as error:
            yield path, str(error)


def _look_up(reference: Reference, bindings: Mapping[str, Binding]) -> JSON:
    binding = bindings.get(reference.name)
    if binding is None:
        raise StepReferenceError(f"{reference.source}: no step named {reference.name!r} has been carried out")
    match reference.part:
        case "text":
            return binding.text
        case "is_error":
            return binding.is_error
        case "json":
            if not binding.has_json:
                raise StepReferenceError(f"{reference.source}: the answer is not JSON, it is {describe(binding.text)}")
    value = binding.json
    for step in reference.path:
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                there = f"a list of {len(value)}" if isinstance(value, list) else describe(value)
                raise StepReferenceError(f"{reference.source}: there is no {step!r} in {there}")
    return value


def _as_text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def resolve(value: JSON, bindings: Mapping[str, Binding]) -> JSON:
    """`value` with its references replaced: one that is a whole text by a value of its JSON type, inside text by text.

    Raises StepReferenceError where a reference leads nowhere.
    """
    match value:
        case str():
            parts = list(_parse(value))
            match parts:
                case [Reference() as only]:
                    return _look_up(only, bindings)
                case _:
                    return "".join(
                        _as_text(_look_up(part, bindings)) if isinstance(part, Reference) else part for part in parts
                    )
        case list():
            return [resolve(item, bindings) for item in value]
        case dict():
            return {key: resolve(item, bindings) for key, item in value.items()}
        case _:
            return value
