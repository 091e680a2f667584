import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from harness.architectures.asking import LONGEST_WAIT, Asking, Seat
from harness.modelagent import ModelChoice, Prices
from harness.models.model import ModelError, Reply, Request, Usage
from harness.targets.deadline import Deadline, TimeUpError
from harness.targets.ending import LimitError
from harness.targets.eventloop import Loop
from proxy.spans import JSON

T = TypeVar("T")
REQUEST = Request("agent", "", (), (), "", 1)


class Answers:
    """A model that gives what it is made with, in order; a negative number is a wait that never ends."""

    name = "answers"

    def __init__(self, *answers: Reply | ModelError | None) -> None:
        self.left = deque(answers)

    async def ask(self, request: Request) -> Reply:
        assert request.agent == "agent"
        match self.left.popleft():
            case ModelError() as error:
                raise error
            case Reply() as reply:
                return reply
            case None:
                await asyncio.Event().wait()
                raise AssertionError

    async def close(self) -> None:
        """Nothing is open."""


class AtOnce:
    def run(self, work: Coroutine[None, None, T]) -> T:
        return asyncio.run(work)


def failure(status: int = 503, after: float | None = None) -> ModelError:
    return ModelError("no luck", status=status, again=status != 401, after=after)


def asking(
    *answers: Reply | ModelError | None, attempts: int = 4, tokens: int | None = None, cost: float | None = None,
    prices: Prices | None = None,
) -> tuple[Asking, list[float], list[dict[str, JSON]]]:  # fmt: skip
    """What asks, the pauses that it made, and the events that it told."""
    events: list[dict[str, JSON]] = []
    pauses: list[float] = []

    def tell(kind: str, fields: dict[str, JSON]) -> None:
        assert kind == "model_call"
        events.append(fields)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    choice = ModelChoice("openai", "answers", attempts=attempts, prices=prices)
    seats = {"agent": Seat(Answers(*answers), choice)}
    return Asking(seats, AtOnce(), tell, tokens, cost, pause), pauses, events


def test_a_failed_call_is_tried_again_in_sight_after_the_time_that_was_asked_for() -> None:
    made, pauses, events = asking(failure(429, 7), failure(500), failure(500), Reply("there"))
    assert made.ask(REQUEST).text == "there"
    assert pauses == [7, 1.0, 2.0]
    assert [(event["attempt"], event["error"]) for event in events] == [(1, True), (2, True), (3, True), (4, False)]
    assert [event.get("status") for event in events] == [429, 500, 500, None]
    assert all(event["in"] is None and event["cost"] is None for event in events)


@pytest.mark.parametrize(
    ("answers", "made"),
    [
        ([failure()] * 3, 3),
        ([failure(401), Reply("never")], 1),
        ([failure(429, LONGEST_WAIT + 1), Reply("never")], 1),
    ],
    ids=["attempts are used up", "another attempt would not help", "the wait would be too long"],
)
def test_a_call_that_fails_for_good_is_an_error(answers: list[Reply | ModelError], made: int) -> None:
    some, _, events = asking(*answers, attempts=3)
    with pytest.raises(ModelError, match="no luck"):
        some.ask(REQUEST)
    assert [event["error"] for event in events] == [True] * made


def test_a_call_that_takes_too_long_is_an_event_too() -> None:
    events: list[dict[str, JSON]] = []
    loop = Loop(Deadline.after(0.02))
    seat = Seat(Answers(None), ModelChoice("openai", "answers"))
    made = Asking({"agent": seat}, loop, lambda _, fields: events.append(fields))
    try:
        with pytest.raises(TimeUpError):
            made.ask(REQUEST)
    finally:
        loop.close()
    assert [(event["error"], event["reason"]) for event in events] == [(True, "the time was up")]


def test_tokens_and_cost_are_added_up_and_limited() -> None:
    counted = Reply("", usage=Usage(60, 20, 10))
    made, _, events = asking(counted, counted, prices=Prices(1, 2, 0.5), tokens=100)
    made.ask(REQUEST)
    assert made.tokens_used == 90
    assert made.cost_used == pytest.approx(0.000105)
    with pytest.raises(LimitError, match=r"took 180 tokens; limits\.tokens is 100"):
        made.ask(REQUEST)
    assert [event["cost"] for event in events] == [pytest.approx(0.000105)] * 2
    made, _, _ = asking(counted, prices=Prices(1, 2, 0.5), cost=0.0001)
    with pytest.raises(LimitError, match=r"cost 0.000105; limits.cost is 0.0001"):
        made.ask(REQUEST)


def test_a_cost_that_is_not_known_is_none_and_is_not_limited() -> None:
    made, _, events = asking(Reply("", usage=Usage(60, 20, 10)), cost=0)
    made.ask(REQUEST)
    assert made.cost_used is None
    assert [event["cost"] for event in events] == [None]
