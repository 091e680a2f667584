"""The schema of trace.json as it is written, made of the records that it is made of. More than that can be read.

Refuses to know who reads it.
"""

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from harness.trace import Coverage, Event, Message, ToolCall, Trace
from harness.traceread import SCHEMA_VERSION
from proxy.spans import JSON

Object: TypeAlias = "dict[str, JSON]"
_WORDS: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ANYTHING = get_type_hints(ToolCall)["arguments"]
"""The type of a field that may hold any JSON."""


def trace_schema() -> Object:
    """The schema of a trace of ours. Calls, messages and events may have members of their source beside ours."""
    coverage = _record(Coverage, required=[field.name for field in fields(Coverage)], open_to_others=False)
    event = _record(Event, required=["type", "seq"], without=("fields",))
    lists: Object = {
        "messages": _list_of(_record(Message, required=["role", "content", "seq"], without=("extra",))),
        "tool_calls": _list_of(_record(ToolCall, required=["name", "arguments"], without=("extra",), null=("name",))),
        "events": _list_of(event),
    }
    hints = get_type_hints(Trace)
    return {
        "title": "Trace",
        "description": _first_paragraph(Trace),
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "coverage": coverage,
            "order": _of(hints["order"]),
            "gaps": _of(hints["gaps"]),
            **lists,
        },
        "required": ["schema_version", "coverage", *lists],
        "additionalProperties": False,
    }


def _record(
    record: type[Coverage] | type[Event] | type[Message] | type[ToolCall],
    *,
    required: list[str],
    without: tuple[str, ...] = (),
    null: tuple[str, ...] = (),
    open_to_others: bool = True,
) -> Object:
    """A record as an object. What is unset is left out, so nothing is null but what is in `null`, and any JSON."""
    hints = get_type_hints(record)
    properties: Object = {}
    for field in fields(record):
        if field.name in without:
            continue
        hint = hints[field.name]
        properties[field.name] = {} if hint == _ANYTHING else _of(hint, null=field.name in null)
    return {
        "description": _first_paragraph(record),
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": open_to_others,
    }


def _list_of(items: Object) -> Object:
    return {"type": "array", "items": items}


def _of(hint: object, *, null: bool = False) -> Object:
    """The schema of a type; `| None` counts only with `null`."""
    if hint in _WORDS:
        return {"type": _WORDS[hint]}
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return {"enum": [*arguments]}
        case origin if origin in (Union, UnionType):
            inner = [one for one in arguments if one is not NoneType]
            assert len(inner) == 1, hint
            found = _of(inner[0])
            return {"anyOf": [found, {"type": "null"}]} if null else found
        case origin if origin is tuple:
            return _list_of(_of(arguments[0]))
        case origin if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object"}
        case _:
            raise TypeError(f"there is no schema of the type {hint}")


def _first_paragraph(record: type) -> str:
    return " ".join((record.__doc__ or "").partition("\n\n")[0].split())
