"""An event loop that turns only while something is awaited, and no longer than the trial may.

Refuses to know what is awaited.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TypeVar

from harness.targets.deadline import Deadline, TimeUpError, TrialCancelledError

T = TypeVar("T")


@dataclass(slots=True)
class Loop:
    """One event loop for all servers and models of a trial."""

    deadline: Deadline
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Turn the loop until `work` is done. Raises TimeUpError and TrialCancelledError."""
        try:
            # What is answered at once would never be waited for.
            self.deadline.wait({}, 0)
        except ValueError:
            work.close()
            raise
        return self.loop.run_until_complete(self._within(work))

    async def _within(self, work: Coroutine[None, None, T]) -> T:
        task = self.loop.create_task(work)
        stop: asyncio.Future[None] = self.loop.create_future()
        cancel = self.deadline.cancel
        if cancel is not None:
            self.loop.add_reader(cancel, _settle, stop)
        try:
            both: set[asyncio.Future[T] | asyncio.Future[None]] = {task, stop}
            await asyncio.wait(both, timeout=self.deadline.left(), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if cancel is not None:
                self.loop.remove_reader(cancel)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        if stop.done():
            raise TrialCancelledError("the trial was cancelled")
        raise TimeUpError("the time was up")

    def close(self) -> None:
        """Cancel what is still running, and close the loop."""
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.wait(left))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


def _settle(stop: "asyncio.Future[None]") -> None:
    if not stop.done():
        stop.set_result(None)
