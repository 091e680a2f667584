"""Spans of the real session, converted: what the wire does and what the trace says are one story."""

import json
from collections.abc import Sequence
from itertools import count

import pytest

from harness.convert import convert
from harness.trace import Trace
from proxy.policy import Policy, Rule, deny_policy
from proxy.record import Identity, Stamp
from proxy.session import Session, Side
from proxy.spanread import spans_of
from proxy.spans import Span

EVIL = deny_policy(["mcp/x/evil"])
OBSERVE = Policy(mode="observe", rules=(Rule("deny", "mcp/x/evil"),))
INITIALIZE = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}'
)
INITIALIZED = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}'
OK = '{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}'


class Wiretap:
    """A session whose lines are kept as spans."""

    def __init__(self, policy: Policy | None, initialized: str = INITIALIZED) -> None:
        ids, self.clock = count(1), count(1000, 10)
        identity = Identity("x", "third_party", "stdio", "c1", run_id="r", scenario_id="s", trial=1, agent_id="a")
        self.session = Session(identity, policy, "0.1.0", lambda digits: f"{next(ids):0{digits}x}", self.now())
        self.records: list[str | bytes | bytearray] = [*self.session.opened().records]
        self.say("client", INITIALIZE)
        self.say("server", initialized)

    def now(self) -> Stamp:
        mono = next(self.clock)
        return Stamp(mono, 1_700_000_000_000_000_000 + mono)

    def say(self, side: Side, line: str | bytes) -> bytes:
        raw = line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line
        step = self.session.line(side, raw + b"\n", self.now())
        self.records += [*step.records, *self.session.settle()]
        return step.forward

    def close(self) -> None:
        self.records += self.session.closed("client_ended", self.now(), len(self.records), 0).records

    @property
    def spans(self) -> list[Span]:
        return [span for record in self.records for span in spans_of(json.loads(record), "record")]

    @property
    def trace(self) -> Trace:
        return convert(self.spans)


def call(name: str = "evil", key: str = "1") -> str:
    return f'{{"jsonrpc":"2.0","id":{key},"method":"tools/call","params":{{"name":"{name}","arguments":{{"n":1E2}}}}}}'


def names(trace: Trace) -> list[tuple[str, str]]:
    return sorted((one.name or "", one.outcome or "") for one in trace.tool_calls)


def test_a_call_and_its_answer_are_one_call() -> None:
    tap = Wiretap(EVIL)
    assert tap.say("client", call("good"))
    tap.say("server", OK)
    tap.close()
    trace = tap.trace
    (one,) = trace.tool_calls
    assert (one.name, one.outcome, one.decision, one.request_id) == ("mcp/x/good", "ok", "allow", "1")
    assert (one.arguments, one.arguments_text) == ({"n": 100.0}, '{"n":1E2}')
    assert trace.gaps == ()
    assert trace.coverage.tool_calls == "wire"


def test_a_kill_after_any_record_loses_no_call_that_was_forwarded() -> None:
    tap = Wiretap(EVIL)
    forwarded = 0
    for number in range(3):
        forwarded += bool(tap.say("client", call("good", str(number + 1))))
        # The proxy is killed here, with everything written and nothing closed.
        assert len(tap.trace.tool_calls) == forwarded
        assert tap.trace.tool_calls[-1].outcome == "unanswered"
        tap.say("server", f'{{"jsonrpc":"2.0","id":{number + 1},"result":{{"content":[]}}}}')
        assert [one.outcome for one in tap.trace.tool_calls] == ["ok"] * forwarded
    assert forwarded == 3


PING = '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"evil"}}'
FRAMES: dict[str, tuple[str | bytes, Sequence[str]]] = {
    "plain": (call(), ["evil"]),
    "name twice": (call().replace('"name":"evil"', '"name":"evil","name":"good"'), ["evil", "good"]),
    "name twice, other order": (call().replace('"name":"evil"', '"name":"good","name":"evil"'), ["evil", "good"]),
    "method twice": (call().replace('"method"', '"method":"ping","method"'), ["evil"]),
    "folded": (call().replace('"name":"evil"', '"name":"good","Name":"evil"'), ["evil", "good"]),
    "folded method": (PING, ["evil"]),
    "array": (f"[{call('good')},{call()}]", ["evil", "good"]),
    "no id": (call().replace('"id":1,', ""), ["evil"]),
    "id null": (call(key="null"), ["evil"]),
    "id 1.5": (call(key="1.5"), ["evil"]),
    "byte order mark": ("\ufeff" + call(), ["evil"]),
    "utf-16": (call().encode("utf-16"), ["evil"]),
    "NaN": (call().replace("1E2", "NaN"), ["evil"]),
}


@pytest.mark.parametrize(("frame", "tools"), FRAMES.values(), ids=FRAMES.keys())
def test_whatever_is_refused_is_a_denied_call_under_each_of_its_names(frame: str | bytes, tools: list[str]) -> None:
    tap = Wiretap(EVIL)
    assert tap.say("client", frame) == b""
    tap.close()
    assert names(tap.trace) == [(f"mcp/x/{tool}", "denied") for tool in tools]
    refusals = [event for event in tap.trace.events if event.fields.get("decision") == "deny"]
    assert refusals
    assert tap.trace.gaps == ()


@pytest.mark.parametrize("policy", [None, OBSERVE], ids=["no policy", "observe"])
@pytest.mark.parametrize(("frame", "tools"), FRAMES.values(), ids=FRAMES.keys())
def test_whatever_goes_on_is_an_attempt_under_each_of_its_names(
    policy: Policy | None, frame: str | bytes, tools: list[str]
) -> None:
    tap = Wiretap(policy)
    assert tap.say("client", frame)
    tap.close()
    assert names(tap.trace) == [(f"mcp/x/{tool}", "unanswered") for tool in tools]


def test_all_that_a_server_says_on_the_wire_beside_results_of_calls_is_told() -> None:
    tap = Wiretap(None)
    tap.say("client", '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}')
    tap.say("server", '{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{},"instructions":"T1"}}')
    tap.say("client", '{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"file:///a"}}')
    tap.say("server", '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"T2"}}')
    tap.say("server", '{"jsonrpc":"2.0","id":2,"result":{"contents":[{"uri":"file:///a","text":"T3"}]}}')
    tap.say("client", '{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p"}}')
    tap.say("server", '{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"T4"}}')
    tap.say("server", '{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"message":"T5"}}')
    tap.say("client", '{"jsonrpc":"2.0","id":9,"result":{"action":"decline"}}')
    tap.say("server", '{"jsonrpc":"2.0","id":77,"result":{"x":"T6"}}')
    tap.say("server", "T7: this is no message")
    tap.say("client", '{"jsonrpc":"2.0","id":4,"method":"ping"}')
    tap.say("server", '{"jsonrpc":"2.0","id":4,"result":{}}')
    told = [event.fields for event in tap.trace.events if event.type == "mcp_server_message"]
    assert [(one["part"], next(f"T{n}" for n in range(1, 8) if f"T{n}" in str(one["content"]))) for one in told] == [
        ("result", "T1"),
        ("params", "T2"),
        ("result", "T3"),
        ("error", "T4"),
        ("params", "T5"),
        ("answer", "T6"),
        ("frame", "T7"),
    ]
    assert told[2]["uri"] == "file:///a"
    assert told[3]["name"] == "mcp/x/prompt:p"


def test_what_the_opening_says_is_told_beside_its_own_events_and_not_twice() -> None:
    tap = Wiretap(None, INITIALIZED.replace('"serverInfo"', '"instructions":"Ask.","serverInfo"'))
    told = [event.fields["content"] for event in tap.trace.events if event.type == "mcp_server_message"]
    assert told == [{"instructions": "Ask."}]
    assert not [event for event in Wiretap(None).trace.events if event.type == "mcp_server_message"]
