"""What is recorded of answers once there is a moment."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import arrears as put_off
from proxy import vocabulary as v
from proxy.arrears import MOST, MOST_BYTES, Arrears
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import through
from tests.proxy.wires import ALLOWING, call

WAIT = 60.0


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


@pytest.mark.parametrize("told", ["{}", '{"jsonrpc":"2.0","id":"other","result":{"content":[]}}'])
@pytest.mark.parametrize(
    "between", [None, '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}']
)
def test_a_call_of_a_session_that_got_no_answer_is_over_before_the_next_message_that_has_its_id_or_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, between: str | None
) -> None:
    monkeypatch.setattr(put_off, "IDLE", WAIT)

    def answers(request: Request) -> None:
        message = json.loads(request.body)
        if "id" not in message:
            request.answer(b"", "202 Accepted")
        elif message["params"]["name"] == "first":
            request.answer(told.encode())
        else:
            request.answer(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"of":"second"}}')

    with through(tmp_path, ALLOWING, answers) as (proxy, _):
        session = (b"mcp-session-id", b"s")
        assert proxy.post(call("first"), session).body == told.encode()
        if between is not None:
            proxy.post(between, session)
        proxy.post(call("second"), session)
        found = {span.attributes[v.TOOL_NAME]: span.attributes for span in proxy.spans("request")}
    assert {name: one[v.OUTCOME] for name, one in found.items()} == {"first": "unanswered", "second": "ok"}
    assert "second" in str(found["second"][v.TOOL_RESULT])
    assert not any(v.CANCELLED in one or v.ID_REUSED in one for one in found.values())
