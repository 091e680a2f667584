"""The context file that the harness writes: which run a connection belongs to (record.md section 1).

Refuses to know what is done with it.
"""

import json
from base64 import b64decode
from functools import partial
from os import urandom
from typing import NamedTuple

from proxy.record import parse_traceparent


class ContextError(ValueError):
    """A context file that cannot be used: which file, which field, and what was expected."""


class Context(NamedTuple):
    """What the harness says of the run that a connection belongs to (record.md section 1)."""

    run_id: str = ""
    scenario_id: str = ""
    trial: int | None = None
    agent_id: str = ""
    traceparent: str = ""
    redact_key: str = ""
    secrets: tuple[str, ...] = ()
    spans: str = ""


def read_context(path: str) -> Context:
    """Read a context file: a JSON object with some of Context's fields. Raises ContextError."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise ContextError(f"{path}: the context cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise ContextError(f"{path}: a context is a JSON object")
    for name, value in data.items():
        if name not in Context._fields:
            raise ContextError(f"{path}: {name!r} is no field of a context; they are {', '.join(Context._fields)}")
        match name:
            case "trial":
                fits = isinstance(value, int) and not isinstance(value, bool)
            case "secrets":
                fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
            case _:
                fits = isinstance(value, str)
        if not fits:
            expected = {"trial": "a number", "secrets": "a list of text"}.get(name, "text")
            raise ContextError(f"{path}: {name} must be {expected}")
    if data.get("traceparent") and parse_traceparent(data["traceparent"]) is None:
        raise ContextError(f"{path}: traceparent must be a W3C traceparent")
    return Context(**{**data, "secrets": tuple(data.get("secrets", ()))})


def redact_key(context: Context, path: str | None) -> bytes:
    """The run's key, given in hex or base64; a random one where none is given."""
    if not context.redact_key:
        return urandom(32)
    for read in (bytes.fromhex, partial(b64decode, validate=True)):
        try:
            key = read(context.redact_key)
        except ValueError:
            continue
        if len(key) == 32:
            return key
    raise ContextError(f"{path}: redact_key must be 32 bytes in hex or base64")
