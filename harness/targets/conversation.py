"""What an agent was asked and what it said, and what it says of itself, as spans of the harness in run.jsonl.

Refuses to know how the agent was run.
"""

import json
import secrets
import time
from dataclasses import dataclass, field, replace

from harness.hiding import Hiding
from harness.targets.context import Context
from proxy import __version__
from proxy.spanfile import SpanFile
from proxy.spans import INTERNAL, JSON, Attribute, Span, encode_span
from proxy.vocabulary import (
    AGENT_ID,
    AGENT_NAME,
    EVENT_FIELDS,
    EVENT_TYPE,
    INPUT_MESSAGES,
    MONO,
    OPERATION,
    OUTPUT_MESSAGES,
    REPORTED,
    RESULT_MONO,
    RUN_ID,
    SCENARIO_ID,
    SEQ,
    SPAN_KIND,
)

_OURS = frozenset({SPAN_KIND, OPERATION, RUN_ID, SCENARIO_ID, AGENT_ID})
"""Attributes whose values are words of ours, or names from the configuration."""


def _messages(role: str, texts: list[str], hiding: Hiding) -> str:
    # Hidden before they are JSON too: base64 may be broken by line ends, which JSON escapes.
    parts: list[JSON] = [{"role": role, "parts": [{"type": "text", "content": hiding.text(text)}]} for text in texts]
    return json.dumps(parts)


@dataclass(slots=True)
class Conversation:
    """The agent's root span, open until `close`, and the facts that it reports meanwhile."""

    context: Context
    file: SpanFile
    user_message: str
    hiding: Hiding
    _said: list[str] = field(default_factory=list)
    _started_ns: int = field(default_factory=time.time_ns)
    _started_mono: int = field(default_factory=time.monotonic_ns)
    _seq: int = 0

    def say(self, text: str) -> None:
        """The agent said this; the last one is its final answer."""
        self._said.append(text)

    def report(self, event: str, fields: dict[str, JSON]) -> None:
        """A fact that is the agent's own word, as `goal` with `{"id": ...}`."""
        self._note(event, fields, {REPORTED: True})

    def record(self, event: str, fields: dict[str, JSON]) -> None:
        """A fact of an agent whose loop is ours, as `handoff`: we made it, so it is nobody's mere word."""
        self._note(event, fields, {})

    def _note(self, event: str, fields: dict[str, JSON], marks: dict[str, Attribute]) -> None:
        self._seq += 1
        now = time.time_ns()
        self._write(
            Span(
                trace_id=self.context.trace_id,
                span_id=secrets.token_hex(8),
                parent_id=self.context.span_id,
                name=event,
                kind=INTERNAL,
                start_ns=now,
                end_ns=now,
                attributes={
                    SPAN_KIND: "event",
                    SEQ: self._seq,
                    MONO: time.monotonic_ns(),
                    EVENT_TYPE: event,
                    EVENT_FIELDS: json.dumps(fields),
                    **marks,
                    **self.context.attributes(),
                },
            )
        )

    def close(self) -> None:
        """Write the root span with every message, and close the file."""
        self._write(
            Span(
                trace_id=self.context.trace_id,
                span_id=self.context.span_id,
                parent_id="",
                name=f"invoke_agent {self.context.agent_id}",
                kind=INTERNAL,
                start_ns=self._started_ns,
                end_ns=time.time_ns(),
                attributes={
                    SPAN_KIND: "agent_run",
                    SEQ: 0,
                    MONO: self._started_mono,
                    RESULT_MONO: time.monotonic_ns(),
                    OPERATION: "invoke_agent",
                    AGENT_NAME: self.context.agent_id,
                    INPUT_MESSAGES: _messages("user", [self.user_message], self.hiding),
                    OUTPUT_MESSAGES: _messages("assistant", self._said, self.hiding),
                    **self.context.attributes(),
                },
            )
        )
        self.file.close()

    def _write(self, span: Span) -> None:
        attributes = {
            key: self.hiding.text(value) if isinstance(value, str) and key not in _OURS else value
            for key, value in span.attributes.items()
        }
        hidden = replace(
            span, name=self.hiding.text(span.name), message=self.hiding.text(span.message), attributes=attributes
        )
        self.file.append(encode_span(hidden, __version__))
