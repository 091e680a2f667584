"""An event that a stream which is taken up again repeats counts once, and nothing else is taken for one."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.answerevents import Stream
from proxy.replays import Replays
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import through
from tests.proxy.wires import ALLOWING, Wire, call, policy_of, wire

SESSION = (b"mcp-session-id", b"a-session")
NEWS = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}'
SAMPLING = b'{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}'


def event(event_id: str, data: bytes) -> bytes:
    return f"id: {event_id}\n".encode() + b"data: " + data + b"\n\n"


def result(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"told"}]}}' % number


def test_events_that_share_an_id_are_all_recorded(tmp_path: Path) -> None:
    def one_id(request: Request) -> None:
        number = json.loads(request.body)["id"]
        request.stream(*(event("1", data) for data in (NEWS, SAMPLING, result(number))))
        request.end()

    with through(tmp_path, ALLOWING, one_id) as (proxy, _):
        for number in ("1", "2"):
            proxy.post(call("ok", id_text=number), SESSION)
        found = proxy.spans()
    kinds = [(span.attributes[v.SPAN_KIND], span.attributes.get(v.METHOD)) for span in found]
    assert kinds.count(("decision", "sampling/createMessage")) == 2
    assert kinds.count(("notification", "notifications/message")) == 2
    assert [span.attributes[v.OUTCOME] for span in found if v.OUTCOME in span.attributes].count("ok") == 2


@pytest.mark.parametrize(
    ("headers", "then", "asked"),
    [
        ([SESSION, (b"last-event-id", b"6")], SAMPLING, 1),
        ([SESSION, (b"last-event-id", b"6")], SAMPLING.replace(b"s1", b"s2"), 2),
        ([SESSION], SAMPLING, 2),
    ],
    ids=["the same bytes", "other bytes", "a stream that is not taken up again"],
)
def test_a_repeat_is_known_by_its_bytes_on_a_stream_that_is_taken_up_again(
    tmp_path: Path, headers: list[tuple[bytes, bytes]], then: bytes, asked: int
) -> None:
    def resumes(request: Request) -> None:
        request.stream(event("7", SAMPLING if request.method == "POST" else then))
        request.end()

    with through(tmp_path, ALLOWING, resumes) as (proxy, _):
        proxy.post(call("ok"), SESSION)
        assert then in proxy.ask("GET", "/mcp", None, headers).body
        decisions = [span for span in proxy.spans("decision") if span.attributes[v.METHOD] != "tools/call"]
    assert len(decisions) == asked


def feed(on: Wire, replays: Replays, *events: bytes, resumed: bool) -> bytes:
    relay = on.relay
    stream = Stream(lambda: relay.strand("server"), None, lambda: relay.session.edits, replays=replays, resumed=resumed)
    return stream.feed(b"".join(events), ended=True)


def test_what_policy_refused_is_no_repeat_once_another_policy_lets_it_through() -> None:
    replays = Replays()
    with wire(policy_of(client_requests={"sampling": "deny"})) as one:
        assert SAMPLING not in feed(one, replays, event("7", SAMPLING), resumed=True)
        one.relay.adopt(None)
        assert SAMPLING in feed(one, replays, event("7", SAMPLING), resumed=True)
        verdicts = [span.attributes[v.DECISION] for span in one.spans("decision")]
    assert verdicts == ["deny", "allow"]


@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.tuples(st.sampled_from(["", "1", "2"]), st.sampled_from("ab")))),
        max_size=4,
    )
)
def test_every_event_is_recorded_but_for_repeats_of_recorded_ones(
    streams: list[tuple[bool, list[tuple[str, str]]]],
) -> None:
    replays = Replays()
    recorded: list[tuple[str, str]] = []
    with wire() as one:
        for resumed, events in streams:
            sent = [event(event_id, SAMPLING.replace(b"s1", letter.encode())) for event_id, letter in events]
            assert feed(one, replays, *sent, resumed=resumed) == b"".join(sent)
            for said in events:
                if not (resumed and said[0] and said in recorded):
                    recorded.append(said)
        found = [span.attributes[v.ID_TEXT] for span in one.spans("decision")]
    assert found == [f'"{letter}"' for _, letter in recorded]
