"""What an agent was asked and what it said, and what it says of itself, as spans of the harness in run.jsonl.

Refuses to know how the agent was run.
"""

import json
import secrets
import time
from dataclasses import dataclass, field

from harness.targets.context import Context
from proxy import __version__
from proxy.spanfile import SpanFile
from proxy.spans import INTERNAL, JSON, Span, encode_span
from proxy.vocabulary import (
    AGENT_NAME,
    EVENT_FIELDS,
    EVENT_TYPE,
    INPUT_MESSAGES,
    MONO,
    OPERATION,
    OUTPUT_MESSAGES,
    REPORTED,
    RESULT_MONO,
    SEQ,
    SPAN_KIND,
)


def _messages(role: str, texts: list[str]) -> str:
    parts: list[JSON] = [{"role": role, "parts": [{"type": "text", "content": text}]} for text in texts]
    return json.dumps(parts)


@dataclass(slots=True)
class Conversation:
    """The agent's root span, open until `close`, and the facts that it reports meanwhile."""

    context: Context
    file: SpanFile
    user_message: str
    _said: list[str] = field(default_factory=list)
    _started_ns: int = field(default_factory=time.time_ns)
    _started_mono: int = field(default_factory=time.monotonic_ns)
    _seq: int = 0

    def say(self, text: str) -> None:
        """The agent said this; the last one is its final answer."""
        self._said.append(text)

    def report(self, event: str, fields: dict[str, JSON]) -> None:
        """A fact that is the agent's own word, as `goal` with `{"id": ...}`."""
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
                    REPORTED: True,
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
                    INPUT_MESSAGES: _messages("user", [self.user_message]),
                    OUTPUT_MESSAGES: _messages("assistant", self._said),
                    **self.context.attributes(),
                },
            )
        )
        self.file.close()

    def _write(self, span: Span) -> None:
        self.file.append(encode_span(span, __version__))
