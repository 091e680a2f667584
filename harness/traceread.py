"""The two readings of a JSON trace: one of our own, field by field, and one of another harness, as far as it goes.

Refuses to know files and who is judged.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn, TypeAlias, get_args

from harness.finite import finite
from harness.marks import free
from harness.trace import Coverage, Event, Message, Outcome, Source, ToolCall, Trace
from proxy.spans import JSON

SCHEMA_VERSION = 1
LISTS = ("messages", "tool_calls", "events")
PARTS = ("messages", "tool_calls", "results", "events", "state")
NAMES = ("name", "tool", "tool_name")
"""Members that hold a call's name in a trace from elsewhere; the first that is text and not blank is the name."""


Object: TypeAlias = "dict[str, JSON]"

_CALL_FIELDS = frozenset(ToolCall.__dataclass_fields__) - {"extra"}
_MESSAGE_FIELDS = frozenset({"role", "content", "seq", "reported"})
_SOURCES: Mapping[str, Source] = {source: source for source in get_args(Source)}
_OUTCOMES: Mapping[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}


class TraceFileError(ValueError):
    """A trace that cannot be read: which file, which field, and what is expected there."""


class _Fields:
    """The members of one object, taken with the type that each must have; `lenient` gives None instead of an error."""

    def __init__(self, item: Object, where: str, *, lenient: bool = False) -> None:
        self.item = item
        self.where = where
        self.lenient = lenient
        self.taken: set[str] = set()

    def _wrong(self, name: str, expected: str) -> None:
        self.taken.discard(name)
        if not self.lenient:
            raise TraceFileError(f"{self.where}.{name}: {expected} is expected")

    def _value(self, name: str) -> JSON:
        self.taken.add(name)
        return self.item.get(name)

    def text(self, name: str) -> str | None:
        value = self._value(name)
        if value is None or isinstance(value, str):
            return value
        self._wrong(name, "text")
        return None

    def flag(self, name: str) -> bool | None:
        value = self._value(name)
        if value is None or isinstance(value, bool):
            return value
        self._wrong(name, "true or false")
        return None

    def integer(self, name: str) -> int | None:
        value = self._value(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self._wrong(name, "an integer")
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; none where it is absent, and where it is none and this is lenient."""
        found = self.any(name) or []
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            if self.lenient:
                return ()
            raise TraceFileError(f"{self.where}.{name}: a list of texts is expected")
        return tuple(str(one) for one in found)

    def number(self, name: str) -> float | None:
        value = self._value(name)
        if value is None:
            return None
        number = finite(value)
        if number is not None:
            return number
        self._wrong(name, "a finite number")
        return None

    def outcome(self, name: str) -> Outcome | None:
        value = self._value(name)
        if value is None or (isinstance(value, str) and value in _OUTCOMES):
            return None if value is None else _OUTCOMES[value]
        self._wrong(name, f"one of {', '.join(_OUTCOMES)}")
        return None

    def any(self, name: str) -> JSON:
        return self._value(name)

    def rest(self) -> Object:
        """The members that nobody took."""
        return {name: value for name, value in self.item.items() if name not in self.taken}


def _objects(value: Object, where: str, name: str) -> list[Object]:
    items = value.get(name, [])
    if not isinstance(items, list):
        raise TraceFileError(f"{where}: {name}: a list of objects is expected")
    found: list[Object] = []
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise TraceFileError(f"{where}: {name}[{number}]: an object is expected")
        found.append(item)
    return found


def read_own(value: Object, where: str) -> Trace:
    """A trace that we wrote: each field has its type, the lists and `coverage` are there. Raises TraceFileError."""

    def wrong(field: str, message: str) -> NoReturn:
        raise TraceFileError(f"{where}: {field}: {message}")

    version = value["schema_version"]
    if version != SCHEMA_VERSION or isinstance(version, bool | float):
        wrong("schema_version", f"{version!r} is not known; this version reads {SCHEMA_VERSION}")
    for name in ("coverage", *LISTS):
        if name not in value:
            wrong(name, "is missing")
    unknown = value.keys() - {"schema_version", "coverage", "order", "gaps", *LISTS}
    if unknown:
        wrong(min(unknown), "is not a field of a trace")
    stated = value["coverage"]
    if not isinstance(stated, dict) or stated.keys() != set(PARTS):
        wrong("coverage", f"an object of {', '.join(PARTS)} is expected")
    parts: dict[str, Source] = {}
    for part, said in stated.items():
        if not isinstance(said, str) or said not in _SOURCES:
            wrong(f"coverage.{part}", "wire, reported or none is expected")
        parts[part] = _SOURCES[said]
    gaps = value.get("gaps", [])
    if not isinstance(gaps, list):
        wrong("gaps", "a list of texts is expected")
    order = value.get("order", "exact")
    if order not in ("exact", "approximate"):
        wrong("order", "exact or approximate is expected")
    fields = {
        name: [_Fields(item, f"{where}: {name}[{number}]") for number, item in enumerate(_objects(value, where, name))]
        for name in LISTS
    }
    return Trace(
        Coverage(**parts),
        tuple(_message(item, 0) for item in fields["messages"]),
        tuple(_own_call(item) for item in fields["tool_calls"]),
        tuple(_event(item, 0) for item in fields["events"]),
        "approximate" if order == "approximate" else "exact",
        tuple(str(gap) for gap in gaps),
    )


def read_foreign(value: Object, where: str) -> Trace:
    """A trace of another harness, whose members may be of any type. Raises TraceFileError for a list that is none.

    A list that is there counts as reported; if all of them are empty, nobody reported anything (record.md section 5).
    """
    fields = {
        name: [
            _Fields(item, f"{where}: {name}[{number}]", lenient=True)
            for number, item in enumerate(_objects(value, where, name))
        ]
        for name in LISTS
    }
    some = any(fields.values())

    def source(name: str) -> Source:
        return "reported" if some and name in value else "none"

    calls = tuple(_foreign_call(item, seq) for seq, item in enumerate(fields["tool_calls"], 1))
    answered = any(call.result is not None or call.outcome is not None for call in calls)
    return Trace(
        Coverage(
            messages=source("messages"),
            tool_calls=source("tool_calls"),
            results="reported" if answered else "none",
            events=source("events"),
        ),
        tuple(_message(item, seq) for seq, item in enumerate(fields["messages"], 1)),
        calls,
        tuple(_event(item, seq) for seq, item in enumerate(fields["events"], 1)),
        # Nothing says how the three lists interleave.
        order="approximate",
    )


def _message(fields: _Fields, place: int) -> Message:
    role = fields.text("role")
    if role is None and not fields.lenient:
        raise TraceFileError(f"{fields.where}.role: is missing")
    content, seq, reported = fields.any("content"), fields.integer("seq"), fields.flag("reported")
    return Message(role or "", content, place if seq is None else seq, reported is True, _kept(fields, _MESSAGE_FIELDS))


def _event(fields: _Fields, place: int) -> Event:
    kind = fields.text("type")
    if kind is None and not fields.lenient:
        raise TraceFileError(f"{fields.where}.type: is missing")
    seq, time, span_id = fields.integer("seq"), fields.text("time"), fields.text("span_id")
    reported = fields.flag("reported")
    if not fields.lenient:
        return Event(kind or "", fields.rest(), seq or place, time, span_id, reported is True)
    return Event(kind or "", free(fields.rest()), place if seq is None else seq, time, span_id, reported is True)


def _call(fields: _Fields, name: str | None, names: tuple[str, ...], place: int, extra: Object) -> ToolCall:
    seq = fields.integer("seq")
    return ToolCall(
        name=name,
        arguments=fields.any("arguments"),
        mcp_server_id=fields.text("mcp_server_id"),
        mcp_tool_name=fields.text("mcp_tool_name"),
        mcp_method=fields.text("mcp_method"),
        trust=fields.text("trust"),
        mcp_transport=fields.text("mcp_transport"),
        seq=place if seq is None else seq,
        result_seq=fields.integer("result_seq"),
        outcome=fields.outcome("outcome"),
        result=fields.any("result"),
        is_error=fields.flag("is_error"),
        decision=fields.text("decision"),
        decision_enforced=fields.flag("decision_enforced"),
        decision_reason=fields.text("decision_reason"),
        agent=fields.text("agent"),
        started_at=fields.text("started_at"),
        duration_ms=fields.number("duration_ms"),
        span_id=fields.text("span_id"),
        connection=fields.text("connection"),
        request_id=fields.text("request_id"),
        arguments_text=fields.text("arguments_text"),
        arguments_truncated=fields.flag("arguments_truncated") is True,
        result_truncated=fields.flag("result_truncated") is True,
        names=names,
        rounds=fields.texts("rounds"),
        fault=fields.text("fault"),
        server_outcome=fields.outcome("server_outcome"),
        extra=extra,
    )


def _own_call(fields: _Fields) -> ToolCall:
    names = fields.texts("names")
    extra = {key: value for key, value in fields.item.items() if key not in _CALL_FIELDS}
    return _call(fields, fields.text("name"), names, 0, extra)


def _foreign_call(fields: _Fields, place: int) -> ToolCall:
    item = fields.item
    shapes = [item.get(name) for name in NAMES]
    found = [shape.strip() for shape in shapes if isinstance(shape, str) and shape.strip()]
    names = dict.fromkeys(found)
    match item.get("function"):
        case {"name": str() as name} if name.strip():
            names[name.strip()] = None
        case _:
            pass
    call = _call(fields, found[0] if found else None, tuple(names), place, {})
    if isinstance(item.get("name"), str):
        fields.taken.add("name")
    return replace(call, extra=_kept(fields, _CALL_FIELDS))


def _kept(fields: _Fields, ours: frozenset[str]) -> Object:
    """What has no field here. A member that has the name of one and not its type is kept as `source_<name>`."""
    return {f"source_{key}" if key in ours else key: value for key, value in fields.rest().items()}
