"""How long a target may take, and how a trial is told to stop: one object that every wait of a trial goes through.

Refuses to know what is waited for.
"""

import select
import time
from collections.abc import Mapping
from dataclasses import dataclass


class TimeUpError(ValueError):
    """The trial's `limits.seconds` are over."""


class TrialCancelledError(ValueError):
    """Somebody asked for the trial to stop."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """`at` is in seconds of CLOCK_MONOTONIC; `cancel` is a descriptor, readable once the trial is to stop."""

    at: float
    cancel: int | None = None

    @classmethod
    def after(cls, seconds: float, cancel: int | None = None) -> "Deadline":
        """The deadline that is so many seconds from now."""
        return cls(time.monotonic() + seconds, cancel)

    def left(self) -> float:
        """Seconds until the deadline, never below 0."""
        return max(0.0, self.at - time.monotonic())

    def wait(self, events: Mapping[int, int], at_most: float | None = None) -> dict[int, int]:
        """The descriptors that are ready of `events` (descriptor to poll mask), empty only after `at_most` seconds.

        Raises TimeUpError at the deadline and TrialCancelledError once the trial is to stop.
        """
        poll = select.poll()
        for descriptor, mask in events.items():
            poll.register(descriptor, mask)
        if self.cancel is not None:
            poll.register(self.cancel, select.POLLIN)
        left = self.left()
        seconds = left if at_most is None else min(left, at_most)
        ready = dict(poll.poll(seconds * 1000))
        if self.cancel is not None and self.cancel in ready:
            raise TrialCancelledError("the trial was cancelled")
        if not ready and self.left() == 0:
            raise TimeUpError("the time was up")
        return ready
