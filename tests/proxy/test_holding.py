"""Calls that wait for an approval, in the pure core: the time is given, and the server is the bytes that go on."""

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.connection import Step
from proxy.held import SECOND, Answer, Grant, HeldCall, Refused, call_digest
from proxy.policy import Policy
from proxy.record import Identity, Stamp
from proxy.session import Session
from proxy.spanread import spans_of
from proxy.spans import JSON, Span
from tests.proxy.wires import call, policy_of

APPROVING = policy_of(rules=[{"approve": "mcp/x/pay", "wait": "60s", "grant_lasts": "10m", "reason": "money goes"}])
PAY = call("pay", arguments='{"amount": 5}')
START = 1_800_000_000 * SECOND


class Held:
    """A session with a clock of its own; `sent` is all that went to the server."""

    def __init__(self, policy: Policy | None = APPROVING) -> None:
        numbers = count(1)
        identity = Identity("x", "third_party", "stdio", "c1", "run", "scenario", 1, "agent")
        self.session = Session(identity, policy, "0", lambda digits: f"{next(numbers):0{digits}x}", self.at(0))
        self.session.connection.holds = True
        self.sent = b""
        self.back = b""
        self.records: list[str] = []
        self.held: list[HeldCall] = []

    @staticmethod
    def at(second: float) -> Stamp:
        return Stamp(int(second * SECOND), START + int(second * SECOND))

    def take(self, step: Step) -> Step:
        self.records += step.records
        self.sent += step.forward
        self.back += step.back
        self.held += step.held
        return step

    def client(self, text: str, second: float = 0) -> Step:
        return self.take(self.session.line("client", text.encode() + b"\n", self.at(second)))

    def answer(self, said: Answer, second: float, place: int = 0) -> Step:
        return self.take(self.session.answer(self.held[place], said, self.at(second)))

    def spans(self, kind: str) -> list[Span]:
        found = [span for line in self.records for span in spans_of(json.loads(line), "test")]
        return [span for span in found if span.attributes[v.SPAN_KIND] == kind]

    @property
    def refusal(self) -> str:
        (line,) = self.back.splitlines()
        return str(json.loads(line)["result"]["content"][0]["text"])


def grant(arguments: JSON = None, tool: str = "mcp/x/pay", *, until: float = 600, **times: int | None) -> Grant:
    said: JSON = {"amount": 5} if arguments is None else arguments
    return Grant("g1", tool, call_digest(tool, said), "operator", START + int(until * SECOND), **times)


def test_a_call_that_is_approved_goes_on_once_with_its_own_bytes_and_an_approval_on_the_record() -> None:
    held = Held()
    held.client(PAY)
    assert (held.sent, held.back) == (b"", b"")
    step = held.answer(grant(granted_at=START), 30)
    assert held.sent == PAY.encode() + b"\n"
    assert step.gate
    (event,) = held.spans("event")
    fields = json.loads(str(event.attributes[v.EVENT_FIELDS]))
    (decision,) = held.spans("decision")
    assert event.attributes[v.EVENT_TYPE] == "approval"
    assert fields == {
        "id": "g1",
        "tool": "mcp/x/pay",
        "arguments_sha256": call_digest("mcp/x/pay", {"amount": 5}),
        "source": "operator",
        "granted_at": "2027-01-15T08:00:00.000000000Z",
        "expires_at": "2027-01-15T08:10:00.000000000Z",
        "used_seq": event.attributes[v.SEQ],
        "revoked_at": None,
        "call": decision.parent_id,
    }
    assert decision.attributes[v.DECISION] == "allow"
    held.answer(grant(), 31)
    assert held.sent == PAY.encode() + b"\n"


@pytest.mark.parametrize(
    ("said", "second", "why"),
    [
        (Refused("the operator denied it"), 1, "the operator denied it"),
        (grant({"amount": 6}), 1, "for other arguments"),
        (grant(tool="mcp/x/other"), 1, "for another tool"),
        (grant(until=1), 1, "has expired"),
        (grant(granted_at=START - 600 * SECOND), 0, "has expired"),
        (grant(granted_at=START + 2 * SECOND), 1, "for a later time"),
        (grant(revoked_at=START + SECOND), 1, "was revoked"),
        (grant(), 60, "no approval came within 60 s"),
    ],
)
def test_an_answer_that_does_not_fit_refuses_the_call_and_says_why(said: Answer, second: float, why: str) -> None:
    held = Held()
    held.client(PAY)
    held.answer(said, second)
    assert held.sent == b""
    assert why in held.refusal
    (decision,) = held.spans("decision")
    (request,) = held.spans("request")
    assert (decision.attributes[v.DECISION], decision.attributes[v.DECISION_RULE]) == ("deny", "approve mcp/x/pay")
    assert request.attributes[v.OUTCOME] == "denied"
    assert held.spans("event") == []


def test_a_grant_after_the_refusal_is_void() -> None:
    held = Held()
    held.client(PAY)
    held.answer(Refused("no approval came within 60 s"), 60)
    held.answer(grant(), 60.5)
    assert held.sent == b""
    assert held.spans("event") == []


def test_what_comes_behind_a_held_call_goes_on_before_it() -> None:
    held = Held()
    held.client(PAY)
    ping = '{"jsonrpc":"2.0","id":2,"method":"ping"}'
    other = call("read", id_text="3")
    held.client(ping)
    held.client(other)
    held.answer(grant(), 5)
    assert held.sent.decode().splitlines() == [ping, other, PAY]


def test_a_held_call_that_its_client_cancels_is_never_sent_and_gets_no_answer_and_the_cancellation_goes_on() -> None:
    held = Held()
    held.client(PAY)
    held.client(call("pay", id_text='"1"'))
    cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    held.client(cancelled, 3)
    assert held.session.connection.freed == held.held[:1]
    held.answer(grant(), 4)
    assert (held.sent, held.back) == (cancelled.encode() + b"\n", b"")
    (request,) = held.spans("request")
    assert (request.attributes[v.OUTCOME], request.attributes[v.CANCELLED]) == ("denied", True)
    held.answer(grant({}), 5, place=1)
    assert b'"1"' in held.sent


def test_a_call_whose_client_is_gone_is_never_sent() -> None:
    held = Held()
    held.client(PAY)
    held.take(held.session.abandon(held.at(3)))
    held.answer(grant(), 4)
    assert held.sent == b""
    assert "the client went away" in held.refusal


def test_a_call_whose_record_cannot_be_written_is_refused_and_asks_nobody() -> None:
    held = Held()
    step = held.session.line("client", PAY.encode() + b"\n", held.at(0))
    failed = held.session.unrecorded("client", step, held.at(0))
    assert (failed.forward, failed.held) == (b"", ())
    assert b"10004" in failed.back
    assert held.session.connection.held == {}


def test_a_call_whose_approval_cannot_be_recorded_is_refused() -> None:
    held = Held()
    held.client(PAY)
    step = held.session.answer(held.held[0], grant(), held.at(1))
    failed = held.session.unrecorded("client", step, held.at(1))
    assert failed.forward == b""
    assert b'"isError": true' in failed.back


def test_a_held_call_is_judged_again_by_the_policy_that_stands_when_the_answer_comes() -> None:
    held = Held()
    held.client(PAY)
    held.session.adopt(policy_of(rules=[{"deny": "mcp/x/pay", "reason": "closed"}]))
    held.answer(grant(), 1)
    assert held.sent == b""
    assert held.refusal.endswith("closed")


@pytest.mark.parametrize(
    "text",
    [
        f"[{PAY}]",
        call("pay", id_text=None),
        call("pay", id_text="1", arguments='{"amount": 5, "amount": 6}'),
        '{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"pay"}}',
    ],
)
def test_what_cannot_wait_is_refused_at_once(text: str) -> None:
    held = Held()
    held.client(text)
    assert (held.sent, held.held) == (b"", [])
    assert held.session.connection.held == {}


def test_where_nobody_holds_calls_one_that_needs_an_approval_is_refused_at_once() -> None:
    held = Held()
    held.session.connection.holds = False
    held.client(PAY)
    assert (held.sent, held.held) == (b"", [])
    assert "money goes" in held.refusal


def test_a_policy_that_only_observes_lets_the_call_through_and_records_that_it_had_to_be_approved() -> None:
    held = Held(policy_of(mode="observe", rules=[{"approve": "mcp/x/pay"}]))
    held.client(PAY)
    assert held.sent == PAY.encode() + b"\n"
    (decision,) = held.spans("decision")
    assert (decision.attributes[v.DECISION], decision.attributes[v.DECISION_ENFORCED]) == ("deny", False)


def test_absent_arguments_are_approved_as_an_empty_map_and_arguments_that_are_no_map_wait_too() -> None:
    held = Held(policy_of(rules=[{"approve": "mcp/x/pay", "arguments": {"required": ["amount"]}}]))
    held.client('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":[5]}}')
    held.client('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay"}}')
    assert [one.one.message.id_text for one in held.held] == ["1"]
    assert b'"id":2' in held.sent
    assert call_digest("mcp/x/pay", None) == call_digest("mcp/x/pay", {})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "é"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(st.sampled_from("ab"), json_values, max_size=2),
    st.dictionaries(st.sampled_from("ab"), json_values, max_size=2),
)
def test_a_grant_lets_through_its_own_arguments_alone(asked: dict[str, JSON], granted: dict[str, JSON]) -> None:
    held = Held()
    held.client(call("pay", arguments=json.dumps(asked)))
    held.answer(grant(granted), 1)
    assert bool(held.sent) == (json.dumps(asked, sort_keys=True) == json.dumps(granted, sort_keys=True))


@given(st.lists(st.sampled_from(["call", "cancel", "grant", "deny", "gone", "late"]), max_size=12))
def test_whatever_happens_a_call_is_sent_only_after_its_own_grant_and_once(events: list[str]) -> None:
    held = Held()
    second, granted = 0.0, 0
    for number, event in enumerate(events, 1):
        second += 1
        waiting = list(held.session.connection.held.values())
        match event:
            case "call":
                held.client(call("pay", id_text=str(number)), second)
            case "cancel" if waiting:
                params = f'{{"requestId":{waiting[0].one.message.id_text}}}'
                held.client(f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}', second)
            case "grant" if held.held:
                granted += held.held[-1] in waiting and held.at(second).mono < held.held[-1].until
                held.answer(grant({}, until=9999), second, place=-1)
            case "deny" if held.held:
                held.answer(Refused("no"), second, place=-1)
            case "gone":
                held.take(held.session.abandon(held.at(second)))
            case "late":
                second += 60
            case _:
                pass
    sent = [line for line in held.sent.splitlines() if b"tools/call" in line]
    assert len(sent) == len(set(sent)) == granted == len(held.spans("event"))
