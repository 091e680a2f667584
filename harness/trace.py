"""What is judged: the messages, tool calls and events of one trial, and how each part of it is known.

Refuses to know spans, files and scenarios. `harness.convert` makes a Trace of spans, `harness.tracefile` of a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from proxy.spans import JSON

Outcome = Literal["ok", "tool_error", "protocol_error", "denied", "unanswered", "cancelled"]
"""How an exchange ended. `denied` only when policy was enforced; None in a trace from elsewhere that does not say."""

Source = Literal["wire", "reported", "none"]
"""wire: seen by us. reported: said by the target or by a file. none: nobody knows."""


TARGET_SAYS = "target:"
"""Stands before the type of an `mcp_*` event and before a canonical name that are only the target's word, so that
nothing that is graded by its name is ever one of them (record.md section 5)."""

_NOTHING: Mapping[str, JSON] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tools/call, attempted or executed. `name` is canonical (`mcp/<server>/<tool>`) when it crossed our wire.

    `arguments` is null when the recorded text was cut (`arguments_truncated`); `arguments_text` stands beside it where
    parsing lost something (repeated keys, number spelling). `started_at` is RFC 3339 UTC with nine digits.
    `names` are all the name shapes that a trace from elsewhere gave the call (`name`, `tool`, `tool_name`,
    `function.name`), `name` among them. `rounds` are the request ids of its further rounds, where a result asked for
    input first (MCP 2026-07-28): one logical call, with the last round's answer. `connection` and `request_id` (JSON
    text) join it to a server's journal.
    `fault` is the injected fault that the call met, for which nobody may blame its server; `server_outcome` how the
    server itself answered where the fault withheld or replaced that, and `unanswered` where an error of the proxy's own
    stands for the answer, since nobody knows then.
    `extra` has the members of a call from elsewhere that no field here takes.
    """

    name: str | None
    arguments: JSON = None
    mcp_server_id: str | None = None
    mcp_tool_name: str | None = None
    mcp_method: str | None = None
    trust: str | None = None
    mcp_transport: str | None = None
    seq: int = 0
    result_seq: int | None = None
    outcome: Outcome | None = None
    result: JSON = None
    is_error: bool | None = None
    decision: str | None = None
    decision_enforced: bool | None = None
    decision_reason: str | None = None
    agent: str | None = None
    started_at: str | None = None
    duration_ms: float | None = None
    span_id: str | None = None
    connection: str | None = None
    request_id: str | None = None
    arguments_text: str | None = None
    arguments_truncated: bool = False
    result_truncated: bool = False
    names: tuple[str, ...] = ()
    rounds: tuple[str, ...] = ()
    fault: str | None = None
    server_outcome: Outcome | None = None
    extra: Mapping[str, JSON] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `role` (user, assistant, system, tool) and `content`, text or the parts of the source."""

    role: str
    content: JSON
    seq: int = 0
    reported: bool = False
    extra: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """A fact beside the calls; `fields` are the columns of record.md section 5 for its `type`.

    `reported` is true where it is the target's own word.
    """

    type: str
    fields: Mapping[str, JSON]
    seq: int = 0
    time: str | None = None
    span_id: str | None = None
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """For each part of the evidence, where it comes from."""

    messages: Source = "none"
    tool_calls: Source = "none"
    results: Source = "none"
    events: Source = "none"
    state: Source = "none"


@dataclass(frozen=True, slots=True)
class Trace:
    """The evidence of one trial. The three tuples are in order: cause before effect (`seq` is the place in all three).

    `order` is `approximate` when spans came from several machines. `complete` is false when connections were lost,
    lines torn or spans dropped; `gaps` says which.
    """

    coverage: Coverage
    messages: tuple[Message, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    events: tuple[Event, ...] = ()
    order: Literal["exact", "approximate"] = "exact"
    gaps: tuple[str, ...] = ()
