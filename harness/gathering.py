"""The facts of one trial, gathered of spans in any order: each once, no payload kept that nobody will ask for.

Refuses to know traces.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harness.copies import Likeness, likeness
from harness.facts import ConvertError, Exchange, Fact, FactReader, Moment, Origin, Other, Ruling, span_key
from proxy import vocabulary as v
from proxy.spans import Span
from proxy.vocabulary import SCOPE


@dataclass(frozen=True, slots=True)
class Choice:
    """Which spans belong to the trial; None where any do."""

    run_id: str | None = None
    scenario_id: str | None = None
    trial: int | None = None

    def takes(self, span: Span) -> bool:
        """Whether the span belongs."""
        attributes = span.attributes
        return (
            (self.run_id is None or attributes.get(v.RUN_ID) == self.run_id)
            and (self.scenario_id is None or attributes.get(v.SCENARIO_ID) == self.scenario_id)
            and (self.trial is None or attributes.get(v.TRIAL) == self.trial)
        )


@dataclass(slots=True)
class Life:
    """A connection as its spans tell it: the last moment of it, how many spans were seen, and its end."""

    origin: Origin
    last: Moment
    last_ns: int
    last_span: str
    seen: int = 0
    closed: Other | None = None


@dataclass(slots=True)
class Gathering:
    """What was gathered. `add` takes one span after another; `facts` are by span identity."""

    choice: Choice = field(default_factory=Choice)
    facts: dict[bytes, Fact] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    unread: dict[tuple[str, str], int] = field(default_factory=dict)
    _likenesses: dict[bytes, bytes] = field(default_factory=dict)
    _waiting: dict[bytes, Ruling | list[Ruling]] = field(default_factory=dict)
    _reader: FactReader = field(default_factory=FactReader)

    def add_all(self, spans: Iterable[Span]) -> "Gathering":
        """Take all spans in."""
        for span in spans:
            if span.scope == SCOPE and self.choice.takes(span):
                self.add(span)
        return self

    def add(self, span: Span) -> None:
        """Take a span of ours in. Raises ConvertError when another one has its identity, or it cannot be read."""
        key = span_key(span.trace_id, span.span_id)
        like = likeness(span)
        known = self._likenesses.get(key)
        if known is not None:
            other = Likeness.unpacked(known)
            if not like.same(other):
                raise ConvertError(
                    f"two spans are both {span.span_id} of trace {span.trace_id} ({span.name}) and differ: "
                    "one of the files holds a span that was changed, or that belongs to another record"
                )
            if not like.better(other):
                return
        self._likenesses[key] = like.packed()
        fact = self._reader.fact(span)
        match fact:
            case Exchange():
                match self._waiting.pop(key, None):
                    case Ruling() as ruling:
                        _drop_copies(ruling, fact, key)
                    case list() as rulings:
                        for ruling in rulings:
                            _drop_copies(ruling, fact, key)
                    case None:
                        pass
            case Ruling() if fact.plain:
                exchange = self.facts.get(fact.parent)
                if isinstance(exchange, Exchange):
                    _drop_copies(fact, exchange, fact.parent)
                else:
                    self._wait(fact)
            case Other(kind="unread") if known is None and fact.attributes.get(v.REFUSED_BY_US) is not True:
                where = (str(fact.origin.server), str(fact.attributes.get(v.UNREAD_REASON)))
                self.unread[where] = self.unread.get(where, 0) + 1
            case None:
                kind = str(span.attributes.get(v.SPAN_KIND))
                self.unknown[kind] = self.unknown.get(kind, 0) + (known is None)
                return
            case _:
                pass
        self.facts[key] = fact

    def _wait(self, ruling: Ruling) -> None:
        """Keep in mind a ruling whose exchange has not come."""
        match self._waiting.get(ruling.parent):
            case None:
                # Nearly always the only one: a list for each would be much memory.
                self._waiting[ruling.parent] = ruling
            case Ruling() as first:
                self._waiting[ruling.parent] = [first, ruling]
            case list() as rulings:
                rulings.append(ruling)

    def settled(self) -> None:
        """No more spans come: forget what only the adding needed."""
        self._likenesses.clear()
        self._waiting.clear()

    def lives(self) -> dict[str, Life]:
        """The connections, by id."""
        lives: dict[str, Life] = {}
        for fact in self.facts.values():
            at, time_ns = _end_of(fact)
            if not at.connection:
                continue
            life = lives.get(at.connection)
            if life is None:
                life = lives[at.connection] = Life(fact.origin, at, time_ns, fact.span_id)
            elif (at, fact.span_id) > (life.last, life.last_span):
                life.last, life.last_ns, life.last_span = at, time_ns, fact.span_id
            life.seen += 1
            match fact:
                case Other(kind="connection_closed"):
                    life.closed = fact
                case _:
                    pass
        return lives

    def gaps(self, lives: Iterable[Life]) -> Iterator[str]:
        """What is known to be missing from the record, in words without ids of this one run's making."""
        for life in lives:
            if life.closed is None:
                yield f"a connection to {life.origin.server} was lost: its end was never written"
                continue
            recorded = life.closed.attributes.get(v.SPANS_RECORDED)
            dropped = life.closed.attributes.get(v.SPANS_DROPPED)
            if isinstance(dropped, int) and dropped > 0:
                yield f"{dropped} spans of a connection to {life.origin.server} could not be written"
            if isinstance(recorded, int) and life.seen > recorded:
                more = life.seen - recorded
                yield f"{more} spans of a connection to {life.origin.server} were not written by its proxy"
            if isinstance(recorded, int) and life.seen < recorded:
                yield f"{recorded - life.seen} of {recorded} spans of a connection to {life.origin.server} are missing"
        for (server, why), count in sorted(self.unread.items()):
            yield f"what went through {count} tunnels to {server} was not observable: {why}"
        for kind, count in sorted(self.unknown.items()):
            yield f"{count} spans are of a kind that this version does not know: {kind}"


def _drop_copies(ruling: Ruling, exchange: Exchange, key: bytes) -> None:
    """The exchange, which `key` names, says all that its ruling's copy of the request does; equal texts become one."""
    ruling.request = None
    ruling.parent = key
    if ruling.id_text == exchange.id_text:
        ruling.id_text = exchange.id_text


def _end_of(fact: Fact) -> tuple[Moment, int]:
    match fact:
        case Exchange():
            return (fact.at, fact.start_ns) if fact.end is None else (fact.end, fact.end_ns)
        case Ruling():
            return fact.at, fact.start_ns
        case Other():
            return fact.at, fact.end_ns
