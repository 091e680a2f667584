"""The rounds of one logical call in the era of 2026-07-28: a result may ask for input, which the next round brings.

It tells which request goes on with which (MCP 2026-07-28, multi round-trip requests) and what an interim result asks of
the client. Refuses to know policy and spans.
"""

from collections.abc import Sequence
from json import JSONDecoder
from typing import NamedTuple, TypeAlias

from proxy.askedinside import ELICITATION
from proxy.frames import Message
from proxy.members import FrameError, Member, scan_members
from proxy.record import Place

_DECODER = JSONDecoder(strict=False)
_MOST = 1024
"""Calls that wait for their next round; of more the oldest are taken for given up."""

CallKey: TypeAlias = tuple[str, str, str]
"""Method, name or uri, and the exact text of the arguments."""


class Leg(NamedTuple):
    """Where a round stands: the span of the first round, that of the round before, and how many came before it."""

    root: str
    before: tuple[str, str]
    number: int


class InputRequest(NamedTuple):
    """One thing that an interim result asks of the client: its method and its exact text."""

    method: str
    text: str


def next_leg(leg: Leg | None, place: Place) -> Leg:
    """The leg of the round behind the one that stands at `place`; `leg` is its own, None in the first round."""
    here = (place.trace_id, place.span_id)
    return Leg(place.span_id, here, 1) if leg is None else Leg(leg.root, here, leg.number + 1)


def is_interim(message: Message) -> bool:
    """Whether an answer is no end of its call: its result asks for input first."""
    result = message.fields.get("result")
    return isinstance(result, dict) and result.get("resultType") == "input_required"


def input_requests(message: Message) -> list[InputRequest]:
    """What a message of the server asks of the client beside a request of its own, in its order.

    In a result or a task's state, or in an error by URL, as a strict reader has it.
    """
    for holder in ("result", "params"):
        if holder in message.fields:
            return [
                InputRequest(str(member.value["method"]), message.text_of(member))
                for member in _inner(message, holder, "inputRequests")
                if isinstance(member.value, dict) and isinstance(member.value.get("method"), str)
            ]
    for data in _inner(message, "error", "data"):
        if data.key == "elicitations" and isinstance(data.value, list):
            return [InputRequest(ELICITATION, message.text_of(data)) for _ in data.value]
    return []


def _inner(message: Message, holder: str, key: str) -> Sequence[Member]:
    """The members of an object in a result, params or an error."""
    try:
        outer = message.members.get(holder)
        if outer is None:
            return ()
        return scan_members(message.text, outer.start, _DECODER, key).params
    except (FrameError, IndexError, ValueError, RecursionError):
        return ()


class Rounds:
    """The calls of one connection that wait for their next round."""

    def __init__(self) -> None:
        self._waiting: dict[CallKey | str, Leg] = {}

    def wait(self, message: Message, call: CallKey, leg: Leg) -> None:
        """Note that an interim result was given to `call`; `leg` is that of the round to come."""
        state = _state(message)
        self._waiting[call if state is None else state] = leg
        if len(self._waiting) > _MOST:
            del self._waiting[next(iter(self._waiting))]

    def next(self, message: Message, call: CallKey) -> Leg | None:
        """The leg of a request that goes on with an earlier round; None for one that begins a call.

        It is known by the exact text of its `requestState`, and where the server gave none by what it calls.
        """
        state = message.given_text("requestState")
        if state is not None:
            return self._waiting.pop(state, None)
        return self._waiting.pop(call, None) if "inputResponses" in message.given else None


def _state(message: Message) -> str | None:
    result = message.members.get("result")
    if result is None:
        return None
    for member in scan_members(message.text, result.start, _DECODER).members:
        if member.key == "requestState":
            return message.text_of(member)
    return None
