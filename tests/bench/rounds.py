"""Contestants measured in turns, so that what else the machine does meets all of them alike.

In each round each takes its turn, from another one on each time; a ratio is of one round, and what is shown is the
median of the rounds. Bounded in rounds and in time. Refuses to know what a contestant is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from time import monotonic

from tests.bench.contestants import Command, Contestant, environment
from tests.bench.wire import Wire, WireError

TURN = 60.0
"""Seconds that one turn of one contestant may take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured at most: rounds of each kind, calls a turn, and a moment (monotonic) at which it ends.

    `cancels` is the number of cancellations a turn, 0 where the server does not tell of them.
    """

    starts: int
    rounds: int
    calls: int
    pipelines: int
    pipelined: int
    until: float
    cancels: int = 0


@dataclass(slots=True)
class Turns:
    """What was measured of one contestant, a number a round; seconds, bytes, seconds of processor time a call."""

    contestant: Contestant
    first: list[float] = field(default_factory=list)
    middle: list[float] = field(default_factory=list)
    tail: list[float] = field(default_factory=list)
    pipelined: list[float] = field(default_factory=list)
    cancelled: list[float] = field(default_factory=list)
    cpu: float = 0.0
    memory: int = 0
    stored: float = 0.0
    problem: str = ""


def folder_size(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def ratio(values: Sequence[float], of: Sequence[float]) -> float:
    """The median over the rounds of a value over the other's of the same round."""
    return median(one / other for one, other in zip(values, of, strict=False))


def added(values: Sequence[float], to: Sequence[float]) -> float:
    """The median over the rounds of a value less the other's of the same round."""
    return median(one - other for one, other in zip(values, to, strict=False))


@contextmanager
def noting(turns: Turns) -> Iterator[None]:
    """Make of a contestant's failure its row in the table: the others go on."""
    try:
        yield
    except (WireError, OSError) as error:
        turns.problem = f"failed: {error}"


class Rounds:
    """All rounds of all contestants in front of one server, in a folder of the caller's."""

    def __init__(self, contestants: Sequence[Contestant], server: Command, folder: Path, plan: Plan) -> None:
        self.server = server
        self.folder = folder
        self.plan = plan
        self.turns = [Turns(contestant, problem=contestant.missing) for contestant in contestants]

    def measure(self) -> list[Turns]:
        """Start-up first, each time a new process; then calls over one connection each, all open at once."""
        for number in range(-1, self.plan.starts) if self.plan.starts else ():
            for turns in self._in_turn(number):
                self._start_up(turns, number)
        wires: dict[str, Wire] = {}
        try:
            for turns in self._there():
                with noting(turns):
                    wires[turns.contestant.name] = self._open(turns, "calls")
            for number in range(self.plan.rounds):
                for turns in self._in_turn(number):
                    self._calls(turns, wires[turns.contestant.name])
            self._note_cpu(wires)
            for turns in self._there():
                self._cancels(turns, wires[turns.contestant.name])
            for number in range(self.plan.pipelines):
                for turns in self._in_turn(number):
                    self._pipeline(turns, wires[turns.contestant.name])
            for turns in self._there():
                self._note_memory(turns, wires[turns.contestant.name])
        finally:
            for wire in wires.values():
                wire.end()
        for turns in self._there():
            self._note_stored(turns, wires[turns.contestant.name].calls)
        return self.turns

    def _in_turn(self, number: int) -> Iterator[Turns]:
        there = self._there()
        if not there or monotonic() > self.plan.until:
            return
        first = number % len(there)
        yield from there[first:] + there[:first]

    def _there(self) -> list[Turns]:
        return [turns for turns in self.turns if not turns.problem]

    def _share(self, turns: Turns, count: int) -> int:
        return max(count // turns.contestant.slowness, 10)

    def _room(self, turns: Turns, what: str) -> Path:
        room = self.folder / f"{self.turns.index(turns)}-{what}"
        room.mkdir(parents=True, exist_ok=True)
        return room

    def _started(self, turns: Turns, what: str) -> Wire:
        room = self._room(turns, what)
        return Wire.start(turns.contestant.command(room, self.server), room, environment(room))

    def _start_up(self, turns: Turns, number: int) -> None:
        """Once more, from nothing to the first answer; the first time, which fills caches, does not count."""
        with noting(turns):
            wire = self._started(turns, "start")
            try:
                with wire.within(TURN):
                    took = wire.initialize()
            finally:
                wire.end()
            if number >= 0:
                turns.first.append(took)

    def _open(self, turns: Turns, what: str) -> Wire:
        wire = self._started(turns, what)
        try:
            with wire.within(TURN):
                wire.initialize()
                for _ in range(self._share(turns, self.plan.calls)):
                    wire.call()
        except WireError:
            wire.end()
            raise
        turns.cpu = -wire.cpu()
        return wire

    def _calls(self, turns: Turns, wire: Wire) -> None:
        with noting(turns), wire.within(TURN):
            times = [wire.call() for _ in range(self._share(turns, self.plan.calls))]
            turns.middle.append(median(times))
            turns.tail.append(quantiles(times, n=20)[-1])

    def _note_cpu(self, wires: dict[str, Wire]) -> None:
        for turns in self.turns:
            if not turns.problem and turns.middle:
                turns.cpu += wires[turns.contestant.name].cpu()
                turns.cpu /= len(turns.middle) * self._share(turns, self.plan.calls)

    def _cancels(self, turns: Turns, wire: Wire) -> None:
        with noting(turns), wire.within(TURN):
            turns.cancelled += [wire.cancel() for _ in range(self.plan.cancels if turns.contestant.cancels else 0)]

    def _pipeline(self, turns: Turns, wire: Wire) -> None:
        with noting(turns), wire.within(TURN):
            count = self._share(turns, self.plan.pipelined)
            turns.pipelined.append(count / wire.pipeline(count))

    def _note_memory(self, turns: Turns, wire: Wire) -> None:
        with noting(turns):
            turns.memory = wire.peak_memory()

    def _note_stored(self, turns: Turns, calls: int) -> None:
        if turns.contestant.stored:
            turns.stored = folder_size(self._room(turns, "calls") / turns.contestant.stored) / calls
