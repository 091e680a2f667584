"""Spans of one trial made into its trace (record.md section 5): pure, in one pass over spans in any order.

Refuses to know files. The same spans give the same trace, however they are shuffled, repeated or mixed with others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from harness import mcpevents, wiremessages
from harness.calls import CALL, calls_of, joined
from harness.facts import Exchange, Fact, Moment, Other, Ruling
from harness.gathering import Choice, Gathering, Life
from harness.jsontext import JsonReader
from harness.trace import Coverage, Event, Message, Source, ToolCall, Trace
from harness.uncollected import uncollected
from proxy import vocabulary as v
from proxy.spans import JSON, Span


class Role(IntEnum):
    """What a moment gives, in the order of what stands at one place of one connection."""

    INPUT = 0
    CALL = 1
    DECISION = 2
    ANSWER = 3
    EVENT = 4
    OUTPUT = 5
    CLOSED = 6
    LOST = 7


class Entry(NamedTuple):
    """One place of the trace to be, and the fact that gives it; None for a connection that was lost.

    Entries sort into the trace's order. `trace` is the trace id of the fact's span: no two facts share both ids.
    """

    at: Moment
    role: Role
    span_id: str
    trace: bytes
    fact: Fact | None


def convert(
    spans: Iterable[Span],
    *,
    run_id: str | None = None,
    scenario_id: str | None = None,
    trial: int | None = None,
    state: Source = "none",
    notes: Sequence[str] = (),
) -> Trace:
    """The trace of the spans that carry `run_id`, `scenario_id` and `trial` (None: any); spans of others are ignored.

    `state` is where the databases' state comes from, which spans do not say. `notes` (of the reader of the spans,
    looked at once they are all read) become gaps. Raises ConvertError for two different spans of one identity, and
    for a span of ours that lacks what its kind must have.
    """
    with uncollected():
        gathering = Gathering(Choice(run_id, scenario_id, trial)).add_all(spans)
        gathering.settled()
        lives = gathering.lives()
        return _Assembly(gathering.facts, lives, JsonReader()).trace(
            state, [*notes, *gathering.gaps(lives[name] for name in sorted(lives))]
        )


class _Assembly:
    """Facts put in order. They are given up one by one as the trace is made of them, so that memory holds them once."""

    def __init__(self, facts: dict[bytes, Fact], lives: Mapping[str, Life], reader: JsonReader) -> None:
        self.facts = facts
        self.lives = lives
        self.reader = reader
        self.opening: dict[str, tuple[tuple[int, Moment, bytes], Exchange]] = {}
        self.messages: list[Message] = []
        self.calls: list[ToolCall] = []
        self.first_rounds: dict[str, tuple[int, int]] = {}
        self.events: list[Event] = []
        self.told: set[Source] = set()

    def trace(self, state: Source, gaps: Iterable[str]) -> Trace:
        """The trace."""
        entries = sorted(self._entries())
        # From here on only the entries hold the facts, each up to the last that it gives.
        self.facts.clear()
        for seq, entry in enumerate(entries, 1):
            if entry.role is Role.ANSWER and isinstance(entry.fact, Exchange):
                entry.fact.end_seq = seq
        entries.reverse()
        seq = 0
        while entries:
            seq += 1
            self._take(entries.pop(), seq)
        seen = bool(self.opening or self.calls)
        coverage = Coverage(
            messages="reported" if "reported" in self.told else "wire" if "wire" in self.told else "none",
            tool_calls="wire" if seen else "none",
            results="wire" if seen else "none",
            events=_events_from(self.events),
            state=state,
        )
        return Trace(coverage, tuple(self.messages), tuple(self.calls), tuple(self.events), gaps=tuple(sorted(gaps)))

    def _entries(self) -> Iterator[Entry]:
        traces: dict[bytes, bytes] = {}
        for key, fact in self.facts.items():
            at, span_id = fact.at, fact.span_id
            trace = traces.setdefault(key[:-8], key[:-8])
            match fact:
                case Exchange():
                    yield Entry(at, Role.CALL, span_id, trace, fact)
                    if fact.end is not None:
                        yield Entry(fact.end, Role.ANSWER, span_id, trace, fact)
                        self._note_opening(fact, fact.end, key)
                case Ruling():
                    parent = self.facts.get(fact.parent)
                    if isinstance(parent, Exchange) and parent.from_client and not fact.from_client:
                        # It is about what an interim result asks; where that went on, the result's own event tells it.
                        if fact.refuses:
                            yield Entry(at, Role.CALL, span_id, trace, fact)
                    elif isinstance(parent, Exchange):
                        known = parent.ruling
                        if known is None or (at, span_id) < (known.at, known.span_id):
                            parent.ruling = fact
                    else:
                        # Its exchange was never written, or there is none: its parent may also be the connection.
                        yield Entry(at, Role.CALL, span_id, trace, fact)
                    yield Entry(at, Role.DECISION, span_id, trace, fact)
                case Other(kind="agent_run"):
                    yield Entry(at, Role.INPUT, span_id, trace, fact)
                    yield Entry(_end_of_run(fact), Role.OUTPUT, span_id, trace, fact)
                case Other(kind="notification" | "malformed" | "unmatched") if fact.attributes:
                    yield Entry(at, Role.EVENT, span_id, trace, fact)
                case Other(kind="event"):
                    yield Entry(at, Role.EVENT, span_id, trace, fact)
                case Other(kind="connection_closed"):
                    yield Entry(at, Role.CLOSED, span_id, trace, fact)
                case Other():
                    pass
        for life in self.lives.values():
            if life.closed is None:
                yield Entry(life.last, Role.LOST, life.last_span, b"", None)

    def _note_opening(self, exchange: Exchange, end: Moment, key: bytes) -> None:
        rank = mcpevents.negotiates(exchange)
        if rank is not None:
            connection = exchange.origin.connection
            found = (rank, end, key)
            if connection not in self.opening or found < self.opening[connection][0]:
                self.opening[connection] = (found, exchange)

    def _take(self, entry: Entry, seq: int) -> None:
        """Add what one entry gives."""
        fact = entry.fact
        match fact:
            case None:
                life = self.lives[entry.at.connection]
                self.events.append(mcpevents.lost(life.origin, seq, life.last_ns, life.last_span))
            case Exchange() if entry.role is Role.CALL:
                ruling = fact.ruling
                self._call(fact, list(calls_of(fact, ruling, self.reader, seq)))
                self.events += mcpevents.asked(fact, seq)
                self.events += wiremessages.sent(fact, ruling, self.reader, seq)
                fact.arguments = fact.ruling = None
            case Exchange():
                opens = self._opens(fact)
                if opens:
                    self.events += mcpevents.opening(fact, self.reader, seq)
                self.events += mcpevents.answer(fact, self.reader, seq)
                if fact.method != CALL or fact.interim or not fact.from_client:
                    self.events += wiremessages.answered(fact, opens, self.reader, seq)
            case Ruling() if entry.role is Role.CALL:
                self.calls += calls_of(None, fact, self.reader, seq)
                self.events += mcpevents.asked_alone(fact, seq)
                self.events += wiremessages.sent(None, fact, self.reader, seq)
            case Ruling():
                self.events.append(mcpevents.decided(fact, seq))
            case Other() if entry.role in (Role.INPUT, Role.OUTPUT):
                self._messages(fact, entry.role, seq)
            case Other() if entry.role is Role.CLOSED:
                self.events.append(mcpevents.closed(fact, seq))
            case Other(kind="notification" | "malformed" | "unmatched"):
                self.events.append(wiremessages.loose(fact, self.reader, seq))
            case Other():
                event = mcpevents.said(fact, self.reader, seq)
                if event is not None:
                    self.events.append(event)

    def _opens(self, exchange: Exchange) -> bool:
        """Whether it is the exchange that negotiated its connection."""
        known = self.opening.get(exchange.origin.connection)
        return known is not None and known[1] is exchange

    def _call(self, exchange: Exchange, found: list[ToolCall]) -> None:
        """Add the calls of one exchange; a later round becomes part of the call that it goes on with."""
        first = self.first_rounds.get(exchange.round_of) if exchange.round_of is not None else None
        if first is not None and len(found) == 1 and found[0].outcome != "denied":
            index, began = first
            duration = None if exchange.end is None else (exchange.end.mono - began) / 1e6
            self.calls[index] = joined(self.calls[index], found[0], duration)
            return
        if exchange.interim and found:
            self.first_rounds[exchange.span_id] = (len(self.calls), exchange.at.mono)
        self.calls += found

    def _messages(self, run: Other, role: Role, seq: int) -> None:
        text = run.attributes.get(v.INPUT_MESSAGES if role is Role.INPUT else v.OUTPUT_MESSAGES)
        value = self.reader.read(text) if isinstance(text, str) else None
        if not isinstance(value, list):
            return
        reported = run.attributes.get(v.REPORTED) is True
        self.told.add("reported" if reported else "wire")
        extra: dict[str, JSON] = {} if run.origin.agent is None else {"agent": run.origin.agent}
        for message in value:
            match message:
                case {"role": str() as who, "parts": list() as parts}:
                    self.messages.append(Message(who, _content(parts), seq, reported, extra))
                case {"role": str() as who, "content": content}:
                    self.messages.append(Message(who, content, seq, reported, extra))
                case _:
                    pass


def _content(parts: list[JSON]) -> JSON:
    """The text of a message whose parts are all text, else its parts."""
    texts: list[str] = []
    for part in parts:
        match part:
            case {"type": "text", "content": str() as text}:
                texts.append(text)
            case _:
                return parts
    return "\n".join(texts)


def _end_of_run(run: Other) -> Moment:
    end = run.attributes.get(v.RESULT_MONO)
    if not isinstance(end, int):
        end = run.at.mono + max(run.end_ns - run.start_ns, 0)
    return run.at._replace(mono=end, seq=run.at.seq + 1)


def _events_from(events: Sequence[Event]) -> Source:
    if any(not event.reported for event in events):
        return "wire"
    return "reported" if events else "none"
