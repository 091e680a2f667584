"""Faults on one connection: what reaches the server, what the client gets, and what the record says of both."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.faults import FaultError, FaultPlan, load_faults, parse_faults
from proxy.redact import Redactor
from proxy.spans import JSON
from tests.proxy.wires import EVIL, Wire, call

ANSWER = (
    '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"abcdef"},{"type":"text","text":"ghij"}],'
    '"structuredContent":{"a":1},"_meta":{"m":1}}}'
)


def plan(*faults: dict[str, JSON]) -> FaultPlan:
    return FaultPlan(parse_faults([{"tool": "mcp/x/get", "call": 1, **one} for one in faults], "test", lambda _: None))


def wired(tmp_path: Path, *faults: dict[str, JSON]) -> Wire:
    return Wire(tmp_path, EVIL, faults=plan(*faults))


def told(wire: Wire) -> dict[str, JSON]:
    """The fields of the one fault event, whose parent is the call's span."""
    span = wire.only("event")
    assert span.attributes[v.EVENT_TYPE] == "fault"
    fields: dict[str, JSON] = json.loads(str(span.attributes[v.EVENT_FIELDS]))
    assert span.parent_id == fields["call_span_id"]
    return fields


def test_an_injected_error_is_answered_in_place_of_the_server_and_recorded_as_ours(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "error", "message": "it broke"})
    wire.client(call("get"), call("get", id_text="2"))
    assert wire.to_server == call("get", id_text="2").encode() + b"\n"
    assert wire.replies == [
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "it broke"}], "isError": True}}
    ]
    wire.end()
    first = wire.spans("request")[0]
    assert (first.attributes[v.OUTCOME], first.attributes[v.FAULT]) == ("tool_error", "error")
    assert first.attributes[v.REFUSED_BY_US] is True
    fields = told(wire)
    assert (fields["fault"], fields["call"], fields["call_span_id"]) == ("error", 1, first.span_id)
    assert [span.attributes[v.DECISION] for span in wire.spans("decision")] == ["allow", "allow"]


def test_an_injected_error_can_be_one_of_the_protocol(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "error", "as": "error"})
    wire.client(call("get"))
    assert wire.replies == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "the tool failed: internal error"}}
    ]
    wire.end()
    assert wire.only("request").attributes[v.OUTCOME] == "protocol_error"


def test_a_call_that_times_out_never_reaches_the_server_and_is_never_answered(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "timeout"})
    wire.client(call("get"), call("get"))  # the second has the same id, and goes on
    assert wire.to_server == call("get").encode() + b"\n"
    wire.server(ANSWER)
    wire.end()
    lost, answered = sorted(wire.spans("request"), key=lambda span: span.start_ns)
    assert (lost.attributes[v.OUTCOME], lost.attributes[v.FAULT]) == ("unanswered", "timeout")
    assert answered.attributes[v.OUTCOME] == "ok"
    assert v.FAULT not in answered.attributes


def test_a_call_that_times_out_can_be_cancelled(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "timeout"})
    wire.client(call("get"), '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    wire.end()
    assert wire.only("request").attributes[v.OUTCOME] == "cancelled"


def test_a_lost_answer_is_withheld_and_stands_in_the_record(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "lost"})
    wire.client(call("get"))
    assert wire.to_server == call("get").encode() + b"\n"
    wire.server(ANSWER, '{"jsonrpc":"2.0","method":"notifications/message","params":{}}')
    assert b"abcdef" not in wire.to_client
    assert b"notifications/message" in wire.to_client
    wire.end()
    span = wire.only("request")
    assert (span.attributes[v.OUTCOME], span.attributes[v.FAULT], span.attributes[v.FAULT_OUTCOME]) == (
        "unanswered", "lost", "ok",
    )  # fmt: skip
    assert "abcdef" in str(span.attributes[v.FAULT_RESULT])
    assert v.TOOL_RESULT not in span.attributes


def test_a_lost_answer_that_the_server_never_gave_is_the_servers_own_fault(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "lost"})
    wire.client(call("get"))
    wire.end()
    assert v.FAULT not in wire.only("request").attributes
    assert told(wire)["fault"] == "lost"


@pytest.mark.parametrize(
    ("fault", "content"),
    [
        ({"fault": "empty"}, []),
        ({"fault": "cut"}, [{"type": "text", "text": "abcde"}]),
        ({"fault": "cut", "keep": 8}, [{"type": "text", "text": "abcdef"}, {"type": "text", "text": "gh"}]),
        ({"fault": "cut", "keep": 0}, []),
    ],
)
def test_an_answer_loses_its_content_and_the_server_is_not_blamed(
    tmp_path: Path, fault: dict[str, JSON], content: list[JSON]
) -> None:
    wire = wired(tmp_path, fault)
    wire.client(call("get"))
    wire.server(ANSWER)
    assert wire.replies == [{"jsonrpc": "2.0", "id": 1, "result": {"content": content, "_meta": {"m": 1}}}]
    wire.end()
    span = wire.only("request")
    assert (span.attributes[v.OUTCOME], span.attributes[v.FAULT]) == ("ok", fault["fault"])
    assert json.loads(str(span.attributes[v.TOOL_RESULT])) == {"content": content, "_meta": {"m": 1}}
    assert json.loads(str(span.attributes[v.FAULT_RESULT]))["structuredContent"] == {"a": 1}


def test_an_error_of_the_server_has_no_content_to_lose(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "cut"})
    wire.client(call("get"))
    wire.server('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}')
    assert wire.replies == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}}]
    wire.end()
    assert v.FAULT not in wire.only("request").attributes


def test_a_late_answer_is_given_to_the_edge_with_its_delay(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "delay", "seconds": 2.5})
    wire.client(call("get"))
    passage = wire.server(ANSWER)
    assert (passage.to_client, passage.later) == (b"", ((2.5, ANSWER.encode() + b"\n"),))
    wire.end()
    span = wire.only("request")
    assert (span.attributes[v.OUTCOME], span.attributes[v.FAULT]) == ("ok", "delay")
    assert int(str(span.attributes[v.RESULT_MONO])) - int(str(span.attributes[v.MONO])) >= 2_500_000_000
    assert told(wire)["seconds"] == 2.5


def test_policy_decides_first_and_a_denied_call_is_no_call_to_a_fault(tmp_path: Path) -> None:
    wire = Wire(tmp_path, EVIL, faults=FaultPlan(parse_faults(
        [{"tool": "mcp/x/*", "call": 1, "fault": "error"}], "test", lambda _: None)))  # fmt: skip
    wire.client(call("evil"))
    assert b"refused" in wire.to_client
    wire.client(call("get", id_text="2"))
    assert wire.to_server == b""
    wire.end()
    denied, spoilt = sorted(wire.spans("request"), key=lambda span: span.start_ns)
    assert (denied.attributes[v.OUTCOME], spoilt.attributes[v.FAULT]) == ("denied", "error")


@pytest.mark.parametrize("fault", [{"fault": "error"}, {"fault": "timeout"}, {"fault": "lost"}])
def test_a_call_whose_record_fails_is_refused_and_meets_no_fault(tmp_path: Path, fault: dict[str, JSON]) -> None:
    wire = wired(tmp_path, fault)
    wire.break_record()
    wire.client(call("get"))
    assert wire.to_server == b""
    assert b"10004" in wire.to_client
    assert wire.to_client.count(b"\n") == 1


def test_no_other_line_is_touched_while_an_answer_is_to_be_spoilt(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "empty"})
    wire.client(call("get"), call("other", id_text='"1"'))
    other = ANSWER.replace('"id":1', '"id" : "1"')
    wire.server(other, "no json")
    assert wire.to_client == f"{other}\nno json\n".encode()


def test_the_same_seed_gives_the_same_faults_and_another_seed_others() -> None:
    def drawn(seed: int) -> list[bool]:
        made = parse_faults([{"tool": "mcp/*/*", "probability": 0.3, "seed": seed, "fault": "lost"}], "t", lambda _: 0)
        faults = FaultPlan(made)
        return [faults.strike("mcp/x/a") is not None for _ in range(500)]

    assert drawn(7) == drawn(7) != drawn(8)
    assert 100 < sum(drawn(7)) < 200


def test_each_fault_counts_the_calls_that_fit_it_and_the_first_that_falls_wins() -> None:
    made = parse_faults(
        [{"tool": "mcp/x/a", "call": 2, "fault": "lost"}, {"tool": "mcp/x/*", "call": 3, "fault": "error"}],
        "t", lambda _: 0,
    )  # fmt: skip
    faults = FaultPlan(made)
    names = ["mcp/x/a", "mcp/x/b", "mcp/x/a", "mcp/x/a"]
    struck = [faults.strike(name) for name in names]
    assert [one and (one.fault.kind, one.number) for one in struck] == [None, None, ("lost", 2), None]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"tool": "x", "call": 1, "fault": "error"}, "does not start with mcp/"),
        ({"tool": "mcp/x/a", "fault": "error"}, "exactly one of call"),
        ({"tool": "mcp/x/a", "call": 1, "probability": 1, "seed": 1, "fault": "error"}, "exactly one of call"),
        ({"tool": "mcp/x/a", "call": 0, "fault": "error"}, "from 1"),
        ({"tool": "mcp/x/a", "call": True, "fault": "error"}, "from 1"),
        ({"tool": "mcp/x/a", "probability": 0.5, "fault": "error"}, "seed"),
        ({"tool": "mcp/x/a", "probability": 1.5, "seed": 1, "fault": "error"}, "from 0 to 1"),
        ({"tool": "mcp/x/a", "call": 1, "fault": "oops"}, "error, timeout, delay"),
        ({"tool": "mcp/x/a", "call": 1, "fault": "delay"}, "how many seconds"),
        ({"tool": "mcp/x/a", "call": 1, "fault": "lost", "seconds": 1}, "only the fault delay"),
        ({"tool": "mcp/x/a", "call": 1, "fault": "cut", "keep": -1}, "0 or more"),
        ({"tool": "mcp/x/a", "call": 1, "fault": "error", "extra": 1}, "unknown field"),
        ("no map", "expected a map"),
    ],
)
def test_a_fault_that_cannot_be_used_is_told_with_its_place(fault: JSON, said: str) -> None:
    with pytest.raises(FaultError, match=said) as wrong:
        parse_faults([fault], "faults.yaml", lambda _: 3)
    assert str(wrong.value).startswith("faults.yaml:3: [0]")


def test_a_file_has_the_list_itself_or_under_its_name(tmp_path: Path) -> None:
    one = "{tool: mcp/x/a, call: 1, fault: lost}"
    for text in (f"[{one}]", f"faults: [{one}]"):
        file = tmp_path / "faults.yaml"
        file.write_text(text)
        assert [fault.kind for fault in load_faults(str(file))] == ["lost"]
    with pytest.raises(FaultError, match="cannot be read"):
        load_faults(str(tmp_path / "none.yaml"))


def test_a_secret_in_an_answer_that_was_lost_is_written_nowhere(tmp_path: Path) -> None:
    wire = wired(tmp_path, {"fault": "lost"})
    wire.relay.session.recorder.redactor = Redactor(["abcdef-secret"], b"k" * 32)
    wire.client(call("get"))
    wire.server(ANSWER.replace("abcdef", "abcdef-secret"))
    wire.end()
    attributes = wire.only("request").attributes
    text = str(attributes[v.FAULT_RESULT])
    assert "abcdef-secret" not in text
    assert "[redacted:" in text
    assert attributes[v.payload_bytes("fault.result")] == len(text)
    assert (attributes[v.FAULT], attributes[v.FAULT_OUTCOME]) == ("lost", "ok")


@given(st.lists(st.sampled_from(["error", "timeout", "lost", "empty", "cut"]), min_size=1, max_size=6), st.data())
def test_no_call_reaches_the_server_that_policy_denies_whatever_the_faults(
    kinds: list[str], data: st.DataObject
) -> None:
    faults: list[JSON] = [
        {"tool": "mcp/x/*", "probability": 0.5, "seed": data.draw(st.integers(0, 99)), "fault": kind} for kind in kinds
    ]
    with TemporaryDirectory() as folder:
        wire = Wire(Path(folder), EVIL, faults=FaultPlan(parse_faults(faults, "test", lambda _: None)))
        names = data.draw(st.lists(st.sampled_from(["evil", "get"]), max_size=12))
        for number, name in enumerate(names):
            wire.client(call(name, id_text=str(number)))
            wire.server(ANSWER.replace('"id":1', f'"id":{number}'))
        wire.end()
        assert b"evil" not in wire.to_server
        assert wire.relay.failure == ""
        assert len(wire.spans("request")) == len(names)
        denied = [span for span in wire.spans("request") if span.attributes[v.OUTCOME] == "denied"]
        assert len(denied) == names.count("evil")
