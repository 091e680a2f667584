"""Assignments of calls to what was expected: the largest one, and whether an order can be kept.

Refuses to know what fits what: it gets places. Calls that overlap in time have no order among themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

STEPS = 200_000
"""Choices that a search for an order may try."""


class SearchError(ValueError):
    """So many calls overlap and fit alike that no order was found within STEPS."""


def largest(fitting: Sequence[Sequence[int]]) -> list[int | None]:
    """For each left place one of the right places that fit it, none used twice, as many as can be (Kuhn 1955).

    `fitting` has the right places that fit each left one; None where nothing is left.
    """
    owner: dict[int, int] = {}
    chosen: list[int | None] = [None] * len(fitting)
    for root in range(len(fitting)):
        came: dict[int, int] = {}
        queue, free = [root], None
        while queue and free is None:
            left = queue.pop(0)
            for right in fitting[left]:
                if right in came:
                    continue
                came[right] = left
                if right not in owner:
                    free = right
                    break
                queue.append(owner[right])
        while free is not None:
            left = came[free]
            before = chosen[left]
            owner[free], chosen[left] = left, free
            free = before if left != root else None
    return chosen


@dataclass(frozen=True, slots=True)
class Interval:
    """When a call was under way: the places of its request and of its answer, None when none came."""

    start: int
    end: int | None

    def precedes(self, other: "Interval") -> bool:
        """Whether this was over before the other began."""
        return self.end is not None and self.end < other.start


def in_order(fitting: Sequence[Sequence[int]], intervals: Sequence[Interval], *, all_of_them: bool) -> bool:
    """Whether the left places can be given right ones of their own in an order that time allows.

    With `all_of_them` every right place must be given away. Raises SearchError.
    """
    if all_of_them and len(fitting) != len(intervals):
        return False
    ordered = [sorted(places, key=lambda place: intervals[place].start) for places in fitting]
    failed: set[tuple[int, int, frozenset[int]]] = set()
    steps = 0
    # Each frame: the next left place, the latest start so far, what is used, and the candidates still to try.
    stack = [(0, -1, frozenset[int](), iter(ordered[0] if ordered else []))]
    while stack:
        place, latest, used, candidates = stack[-1]
        if place == len(ordered):
            return True
        for right in candidates:
            steps += 1
            if steps > STEPS:
                raise SearchError("too many calls overlap and fit alike to find an order")
            found = intervals[right]
            if right in used or (found.end is not None and found.end < latest):
                continue
            start = max(latest, found.start)
            # Only calls that still run can be in the way of what comes.
            taken = frozenset(one for one in used | {right} if _lasts(intervals[one], start))
            state = (place + 1, start, taken)
            if state in failed:
                continue
            rest = ordered[place + 1] if place + 1 < len(ordered) else []
            stack.append((place + 1, start, taken, iter(rest)))
            break
        else:
            failed.add((place, latest, used))
            stack.pop()
    return False


def _lasts(interval: Interval, start: int) -> bool:
    return interval.end is None or interval.end >= start
