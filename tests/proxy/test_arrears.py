"""What is recorded of answers once there is a moment."""

import asyncio
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from proxy.arrears import MOST, MOST_BYTES, Arrears

WAIT = 30.0


def test_work_waits_until_no_more_of_it_comes_and_is_done_in_order() -> None:
    async def told() -> None:
        done: list[int] = []
        arrears = Arrears()
        over = asyncio.Event()
        for number in range(3):
            arrears.put(partial(done.append, number), 10)
        arrears.put(over.set, 10)
        assert done == []
        await asyncio.wait_for(over.wait(), WAIT)
        assert done == [0, 1, 2]

    asyncio.run(told())


def test_work_that_is_put_off_again_and_again_is_done_once_enough_of_it_waits() -> None:
    async def told() -> None:
        done: list[int] = []
        arrears = Arrears()
        for number in range(MOST):
            assert done == []
            arrears.put(partial(done.append, number), 1)
        assert done == list(range(MOST))

    asyncio.run(told())


def test_what_holds_many_bytes_does_not_wait() -> None:
    async def told() -> None:
        done: list[int] = []
        Arrears().put(partial(done.append, 1), MOST_BYTES)
        assert done == [1]

    asyncio.run(told())


@given(st.lists(st.one_of(st.integers(1, MOST_BYTES // 2), st.none()), max_size=80))
def test_however_it_is_cleared_all_of_it_is_done_once_and_in_order(steps: list[int | None]) -> None:
    async def told() -> None:
        done: list[int] = []
        arrears = Arrears()
        for number, size in enumerate(steps):
            if size is None:
                arrears.clear()
                done.append(number)
            else:
                arrears.put(partial(done.append, number), size)
        arrears.clear()
        assert done == list(range(len(steps)))

    asyncio.run(told())
