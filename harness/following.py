"""Tool calls out of spans that still arrive: each call once, as soon as it is complete or refused.

Refuses to know files and clocks.
"""

from collections.abc import Iterable

from harness.calls import CALL, calls_of
from harness.facts import Exchange, FactReader, Other, Ruling, span_key
from harness.gathering import Choice
from harness.jsontext import JsonReader
from harness.trace import ToolCall
from proxy.spans import Span
from proxy.vocabulary import SCOPE


class Follower:
    """Takes spans as they come. The exchange of a ruling comes after it, or never."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self._reader = FactReader()
        self._json = JsonReader()
        self._seen: set[bytes] = set()
        self._open: dict[bytes, list[Ruling]] = {}
        self._refused: dict[bytes, Ruling] = {}
        self._told: set[bytes] = set()
        self._count = 0

    @property
    def open(self) -> int:
        """How many calls were let through and have no end yet."""
        return sum(ruling.method == CALL for rulings in self._open.values() for ruling in rulings)

    def take(self, spans: Iterable[Span]) -> list[ToolCall]:
        """The calls that these spans complete, in order. Refusals that came alone in an earlier take are among them.

        Raises ConvertError for a span of ours that cannot be read.
        """
        waited = self._refused
        self._refused = {}
        done: list[tuple[Exchange | None, Ruling | None]] = []
        for span in spans:
            key = span_key(span.trace_id, span.span_id)
            if span.scope != SCOPE or key in self._seen or not self.choice.takes(span):
                continue
            self._seen.add(key)
            match self._reader.fact(span):
                case Exchange() as exchange:
                    opened = self._open.pop(key, None)
                    ruling = opened[0] if opened else self._refused.pop(key, None) or waited.pop(key, None)
                    if key not in self._told:
                        done.append((exchange, ruling))
                case Ruling() as ruling if ruling.refuses:
                    self._refused[ruling.parent if ruling.name is not None else key] = ruling
                case Ruling() as ruling:
                    self._open.setdefault(ruling.parent, []).append(ruling)
                case Other(kind="connection_closed") as closed:
                    done += [(None, ruling) for ruling in self._end(closed.origin.connection)]
                case _:
                    pass
        for key, ruling in waited.items():
            self._told.add(key)
            done.append((None, ruling))
        done.sort(key=lambda pair: _place(*pair))
        calls: list[ToolCall] = []
        for ended, ruled in done:
            self._count += 1
            calls += calls_of(ended, ruled, self._json, self._count)
        return calls

    def _end(self, connection: str) -> list[Ruling]:
        """The rulings of a connection that is over whose frames nobody answered: without an id there is no answer."""
        ended: list[Ruling] = []
        for key, rulings in list(self._open.items()):
            if rulings[0].origin.connection == connection:
                ended += self._open.pop(key)
        return ended


def _place(exchange: Exchange | None, ruling: Ruling | None) -> tuple[int, str, int]:
    fact = exchange or ruling
    return (0, "", 0) if fact is None else fact.at
