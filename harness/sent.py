"""What an agent sent out in a trial: its calls and other messages to servers, what it said, and what it told others.

Refuses to know what is looked for. What came in (results, definitions, messages of users and tools) is not here.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from harness.assertions.arguments import readings
from harness.outcomes import BLOCKED, outcome_words
from harness.trace import Event, Message, ToolCall, Trace
from proxy.spans import JSON

T = TypeVar("T")

SEPARATOR = "\0"
"""Stands between two texts of one item, so that nothing is met across them."""

_TOLD = {
    "mcp_client_message": ("content",),
    "mcp_resource_read": ("uri", "name"),
    "mcp_prompt_get": ("mcp_prompt_name", "name"),
    "mcp_connection_initialized": ("client_info",),
    "mcp_capabilities_negotiated": ("client",),
}
"""Events of the wire that hold what the client sent, and where."""
_RECEIVED = (
    "result",
    "received",
    "context",
    "document",
    "retriev",
    "observation",
    "approval",
    "fault",
    "user",
    "system",
)
"""Parts of the type of an event, by whoever made it, that tell of what came in or of what others did."""
_OTHERS = frozenset(
    {"user", "human", "system", "developer", "tool", "tool_result", "function", "environment", "observation"}
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One thing that was sent. `where` names it in a reason and shows nothing of it.

    `texts` are all its texts, keys too; `values` those of its arguments in order, which a reader may put together.
    `until` is the place of its answer. `call` is None for what is no tool call; `cut`: the record holds only a part.
    `refused`: policy kept what is no tool call from its server.
    """

    where: str
    seq: int
    texts: tuple[str, ...]
    values: tuple[str, ...] = ()
    server: str | None = None
    connection: str | None = None
    until: int | None = None
    call: ToolCall | None = None
    cut: bool = False
    final: bool = False
    refused: bool = False

    @property
    def text(self) -> str:
        """All its texts, apart from each other."""
        return SEPARATOR.join(self.texts)

    @property
    def outcome(self) -> str:
        """What became of it, in words."""
        if self.refused:
            return BLOCKED
        return "said" if self.call is None and self.server is None else _ending(self.call)


def sent_out(trace: Trace) -> tuple[Sent, ...]:
    """All that was sent out, in order."""
    found = [_call(call) for call in trace.tool_calls]
    found += [item for event in trace.events for item in _event(event)]
    spoken = [message for message in trace.messages if not is_of_others(message.role)]
    found += [_message(message, final=message is spoken[-1]) for message in spoken]
    return tuple(sorted(found, key=lambda item: item.seq))


def once_a_frame(found: Iterable[T], of: Callable[[T], tuple[str, Sent]]) -> list[T]:
    """Of what was found, in order, by name, each thing once; what stood beside a call that has it too is left out."""
    told: dict[tuple[str, int], list[ToolCall | None]] = {}
    kept: list[T] = []
    for one in found:
        name, item = of(one)
        before = told.setdefault((name, item.seq), [])
        if not any(call is item.call or item.call is None for call in before):
            kept.append(one)
        before.append(item.call)
    return kept


def _ending(call: ToolCall | None) -> str:
    return "sent" if call is None else outcome_words(call)


def _call(call: ToolCall) -> Sent:
    read = readings(call)
    texts = [name for name in (call.name, call.mcp_tool_name, *call.names) if name is not None]
    for reading in read:
        _add_strings(reading, texts, whole=True)
    # What a trace from elsewhere keeps beside the arguments was sent too, but for what came back.
    for key, value in call.extra.items():
        if not _came_in(key):
            texts.append(key)
            _add_strings(value, texts)
    shown = call.name or call.mcp_tool_name or "a call without a name"
    return Sent(
        f"{shown} (seq {call.seq})",
        call.seq,
        tuple(dict.fromkeys(texts)),
        tuple(leaves(read[0])),
        call.mcp_server_id,
        call.connection,
        call.result_seq,
        call,
        call.arguments_truncated,
    )


def _event(event: Event) -> Iterator[Sent]:
    server = event.fields.get("server_id")
    on_wire = _TOLD.get(event.type) if not event.reported else None
    if on_wire is not None:
        texts = [text for key in on_wire for text in every_string(event.fields.get(key))]
        cut = event.fields.get("content_truncated") is True
        method = event.fields.get("method")
        what = f"{event.type} {method}" if isinstance(method, str) else event.type
        if texts or cut:
            yield Sent(
                f"{what} (seq {event.seq})",
                event.seq,
                tuple(texts),
                server=server if isinstance(server, str) else None,
                cut=cut,
                refused=event.fields.get("outcome") == "denied",
            )
    elif not event.type.startswith("mcp_") and not _came_in(event.type):
        texts = [text for key, value in event.fields.items() if not _came_in(key) for text in strings(value)]
        if texts and _is_own(dict(event.fields)):
            yield Sent(f"event {event.type} (seq {event.seq})", event.seq, tuple(texts))


def _message(message: Message, *, final: bool) -> Sent:
    texts = strings(message.content)
    texts += [text for key, value in message.extra.items() if key == "tool_calls" for text in strings(value)]
    where = "the final answer" if final else "an assistant message"
    return Sent(f"{where} (seq {message.seq})", message.seq, tuple(texts), final=final)


def _came_in(name: str) -> bool:
    told = name.casefold()
    return any(part in told for part in _RECEIVED)


def is_of_others(role: str) -> bool:
    """Whether who speaks in this role is not the agent; it is in a role that nobody has heard of."""
    return role.strip().casefold() in _OTHERS


def final_message(trace: Trace) -> Message | None:
    """What the agent said last, None where it said nothing."""
    return next((message for message in reversed(trace.messages) if not is_of_others(message.role)), None)


def _is_own(value: dict[str, JSON]) -> bool:
    role = value.get("role")
    return not isinstance(role, str) or not is_of_others(role)


def strings(value: JSON) -> list[str]:
    """Every text in a value, keys and numbers too; of messages inside, only the agent's own."""
    found: list[str] = []
    _add_strings(value, found)
    return found


def every_string(value: JSON) -> list[str]:
    """The same with all messages inside: for what crossed a wire, where a message is no more than a value."""
    found: list[str] = []
    _add_strings(value, found, whole=True)
    return found


def _add_strings(value: JSON, found: list[str], *, whole: bool = False) -> None:
    match value:
        case str():
            found.append(value)
        case list():
            for item in value:
                _add_strings(item, found, whole=whole)
        case dict() if whole or "role" not in value or _is_own(value):
            for key, item in value.items():
                found.append(key)
                # Most are texts, and a long trace has very many.
                if isinstance(item, str):
                    found.append(item)
                else:
                    _add_strings(item, found, whole=whole)
        case None | bool() | dict():
            pass
        case _:
            found.append(json.dumps(value))


def leaves(value: JSON) -> list[str]:
    """Every text and number in a value but its keys, in order."""
    match value:
        case str():
            return [value]
        case list():
            return [text for item in value for text in leaves(item)]
        case dict():
            return [text for item in value.values() for text in leaves(item)]
        case None | bool():
            return []
        case _:
            return [json.dumps(value)]
