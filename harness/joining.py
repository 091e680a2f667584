"""What a reader makes of pieces: the values of one call, and of the calls of one connection, put together.

Refuses to know what is looked for. Calls that overlap in time have no order, so nothing here depends on theirs.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise

from harness.sent import Sent

NEIGHBOURS = 16
"""Calls on either side, by their begin, that a call is put beside where calls overlap."""


@dataclass(frozen=True, slots=True)
class Together:
    """The calls of one connection by their begin, in their order, and pairs of which one may have followed the other at
    once. Where no two calls overlap, both orders are one, and no pair says more than the whole."""

    calls: Sequence[Sent]
    ordered: Sequence[Sent]
    pairs: Callable[[], Iterator[tuple[Sent, Sent]]]


def connected(sent: Sequence[Sent]) -> tuple[Together, ...]:
    """The calls of what was sent, by connection; where none is known, by server."""
    found: list[Together] = []
    for calls in _connections(sent):
        is_apart = _are_apart(calls)
        pairs = partial(_neighbours, calls)
        found.append(Together(calls, calls if is_apart else in_order(calls), _no_pairs if is_apart else pairs))
    return tuple(found)


def put_together(connections: Sequence[Together]) -> Iterator[tuple[str, Sent]]:
    """Texts that only come about when values are joined, each with the last call that it needs.

    The values of each call; of two calls that may follow one another, where any overlap; of each connection in order.
    """
    for together in connections:
        calls = together.calls
        for item in calls:
            if len(item.values) > 1:
                yield "".join(item.values), item
        if len(calls) > 1:
            last = max(calls, key=lambda item: item.seq)
            yield "".join([value for item in together.ordered for value in item.values]), last
        for first, then in together.pairs():
            yield "".join((*first.values, *then.values)), max(first, then, key=lambda item: item.seq)


def in_order(calls: Sequence[Sent]) -> list[Sent]:
    """The calls so that one that was over before another began comes first, and else by what they say.

    `calls` are by their begin.
    """
    if _are_apart(calls):
        return list(calls)
    tie = count()
    waiting = list(enumerate(calls))
    ends = [(_end(item), place) for place, item in waiting]
    heapq.heapify(ends)
    ready: list[tuple[tuple[str, ...], int, int]] = []
    done: set[int] = set()
    ordered: list[Sent] = []
    next_place = 0
    while len(ordered) < len(calls):
        while ends[0][1] in done:
            heapq.heappop(ends)
        while next_place < len(calls) and calls[next_place].seq <= ends[0][0]:
            heapq.heappush(ready, (calls[next_place].values, next(tie), next_place))
            next_place += 1
        _, _, place = heapq.heappop(ready)
        done.add(place)
        ordered.append(calls[place])
    return ordered


def _are_apart(calls: Sequence[Sent]) -> bool:
    """Whether each call was over before the next began."""
    return all(_end(one) < other.seq for one, other in pairwise(calls))


def _end(item: Sent) -> float:
    return float("inf") if item.until is None else max(item.until, item.seq)


def _connections(sent: Sequence[Sent]) -> Iterator[list[Sent]]:
    """The calls of each connection, by their begin; where none is known, of each server."""
    groups: dict[tuple[str | None, str | None], list[Sent]] = {}
    for item in sent:
        if item.call is not None:
            groups.setdefault((item.connection, item.server), []).append(item)
    return (sorted(group, key=lambda item: item.seq) for group in groups.values())


def _no_pairs() -> Iterator[tuple[Sent, Sent]]:
    return iter(())


def _neighbours(calls: Sequence[Sent]) -> Iterator[tuple[Sent, Sent]]:
    """Pairs of calls of which the second may have followed the first at once."""
    for place, first in enumerate(calls):
        after = [item for item in calls[place + 1 : place + 1 + NEIGHBOURS] if item.seq > _end(first)]
        latest = min(map(_end, after), default=float("inf"))
        low = max(0, place - NEIGHBOURS)
        for then in calls[low : place + 1 + NEIGHBOURS]:
            if then is not first and _end(then) >= first.seq and then.seq <= latest:
                yield first, then
