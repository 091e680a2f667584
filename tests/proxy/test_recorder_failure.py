"""When the record cannot be written no call is let through, and every answer is (wire rule 9)."""

import os
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.policy import Policy
from proxy.record import Identity
from proxy.refusals import DENIED, RECORDER_FAILED
from proxy.relay import Relay
from proxy.spanfile import SpanFile
from tests.proxy.deniedlines import UNREADABLE, code_of
from tests.proxy.test_client_requests import ELICIT, ROOTS, SAMPLE, answered
from tests.proxy.wires import ALLOWING, EVIL, OBSERVING, Wire, call, policy_of

ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"a":1}}'
POLICIES = pytest.mark.parametrize("policy", [None, ALLOWING, OBSERVING], ids=["none", "allowing", "observing"])
HIDING = policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}])


def broken(tmp_path: Path, policy: Policy | None = None) -> Wire:
    connection = Wire(tmp_path, policy)
    connection.break_record()
    return connection


@POLICIES
def test_the_call_whose_decision_failed_and_all_later_ones_are_refused(tmp_path: Path, policy: Policy | None) -> None:
    connection = broken(tmp_path, policy)
    connection.client(call("ok"), call("ok", id_text="2"))
    connection.client('{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"a"}}')
    connection.client('{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"a"}}')
    assert connection.to_server == b""
    assert [code_of(reply) for reply in connection.replies] == [RECORDER_FAILED] * 4
    assert "No space left" in connection.relay.failure


def test_calls_that_were_recorded_before_stay_recorded(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("ok"))
    connection.break_record()
    connection.client(call("ok", id_text="2"))
    assert connection.to_server.decode() == call("ok") + "\n"
    assert connection.only("decision").attributes[v.ID_TEXT] == "1"


@POLICIES
def test_an_answer_whose_record_failed_is_delivered(tmp_path: Path, policy: Policy | None) -> None:
    connection = Wire(tmp_path, policy)
    connection.client(call("ok"))
    connection.break_record()
    connection.server(ANSWER, '{"jsonrpc":"2.0","id":9,"result":{}}', "banner")
    assert connection.to_client.decode() == ANSWER + '\n{"jsonrpc":"2.0","id":9,"result":{}}\nbanner\n'
    connection.client(call("ok", id_text="2"))
    assert connection.to_server.decode() == call("ok") + "\n"


@POLICIES
def test_what_is_no_call_passes(tmp_path: Path, policy: Policy | None) -> None:
    connection = broken(tmp_path, policy)
    lines = [
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
        '{"jsonrpc":"2.0","id":2,"method":"vendor/x"}',
        '{"jsonrpc":"2.0","id":3,"result":{}}',
        "",
    ]
    connection.client(*lines, *lines)
    assert connection.to_server.decode().split("\n")[:-1] == lines + lines
    assert connection.to_client == b""


@pytest.mark.parametrize("policy", [None, OBSERVING], ids=["none", "observing"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("line", [line for line, _ in UNREADABLE.values()], ids=UNREADABLE.keys())
def test_a_line_that_may_be_a_call_is_refused(tmp_path: Path, policy: Policy | None, first: bool, line: bytes) -> None:
    connection = broken(tmp_path, policy)
    if not first:
        connection.client(call("ok"))
        connection.to_client = b""
    connection.client(line + b"\n")
    if first and connection.to_server:
        # No reader sees a call in it, so that there was no decision to be written.
        assert not any(text in line.lower() for text in (b"tools/call", b"t\0o\0o\0l"))
    else:
        assert connection.to_server == b""
    for reply in connection.replies if b"1" * 5000 not in line else []:
        for one in reply if isinstance(reply, list) else [reply]:
            assert code_of(one) == RECORDER_FAILED


def test_a_denied_call_stays_denied(tmp_path: Path) -> None:
    connection = broken(tmp_path, EVIL)
    connection.client(call("evil"), call("evil", id_text="2"))
    assert connection.to_server == b""
    assert [code_of(reply) for reply in connection.replies] == [DENIED, DENIED]
    assert connection.relay.failure


def test_an_array_with_a_call_is_refused_whole(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.negotiate("2025-03-26")
    connection.break_record()
    connection.client(f'[{call("ok")},{{"jsonrpc":"2.0","id":2,"method":"ping"}}]')
    assert connection.to_server == b""
    (reply,) = connection.replies
    assert isinstance(reply, list)
    assert len(reply) == 2


@pytest.mark.parametrize("line", [SAMPLE, ELICIT, ROOTS])
def test_a_client_request_is_refused_to_the_server(tmp_path: Path, line: str) -> None:
    connection = broken(tmp_path)
    connection.server(line, line)
    assert connection.to_client == b""
    assert [code for _, code in answered(connection)] == [RECORDER_FAILED, RECORDER_FAILED]


def test_a_client_request_past_what_is_held_is_refused_once_the_record_has_failed(tmp_path: Path) -> None:
    connection = broken(tmp_path)
    connection.server(SAMPLE)
    connection.to_server = b""
    connection.server(SAMPLE.replace("[]", '["' + "x" * 100_000 + '"]'))
    assert connection.to_client == b""
    assert [code for _, code in answered(connection)] == [RECORDER_FAILED]


def test_a_request_that_flows_when_the_record_fails_flows_on_and_is_not_answered_twice(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    line = SAMPLE.replace("[]", '["' + "x" * 100_000 + '"]').encode() + b"\n"
    connection.server(line[:80_000])
    connection.break_record()
    connection.client(call("ok"))
    connection.to_client = connection.to_client[:80_000]
    connection.server(line[80_000:])
    assert connection.to_client == line
    assert connection.to_server == b""


def test_in_an_array_the_answers_are_still_delivered_and_hidden_tools_stay_hidden(tmp_path: Path) -> None:
    connection = Wire(tmp_path, HIDING)
    connection.negotiate("2025-03-26")
    connection.client('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    connection.to_server = b""
    connection.break_record()
    connection.server(f'[{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"evil"}},{{"name":"ok"}}]}}}},{SAMPLE}]')
    assert connection.to_client == b'[{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"ok"}]}}]\n'
    assert answered(connection) == [("1", RECORDER_FAILED)]


def test_an_answer_past_what_is_held_is_still_delivered(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("ok"))
    connection.break_record()
    connection.client(call("ok", id_text="2"))
    connection.to_client = b""
    line = b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + b"y" * 17 * 1024 * 1024 + b'"}}\n'
    connection.server(line[:1_000_000], line[1_000_000:])
    assert connection.to_client == line


def test_a_record_that_is_broken_from_the_start_lets_no_call_through(tmp_path: Path) -> None:
    spans = SpanFile("/dev/full", os.open("/dev/full", os.O_WRONLY))
    relay = Relay(Identity("x", "trusted", "stdio", "c"), None, "0", spans)
    assert relay.failure
    passage = relay.from_client(call("ok").encode() + b"\n")
    assert passage.to_server == b""
    assert b"10004" in passage.to_client
    relay.close("server_ended")


def test_a_fault_of_our_own_lets_no_call_through_and_keeps_no_answer_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Wire(tmp_path)
    connection.client(call("ok"))

    def fault(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(connection.relay.session.plain, "decided", fault)
    monkeypatch.setattr(connection.relay.session, "line", fault)
    connection.to_server = b""
    connection.client(call("ok", id_text="2"))
    connection.server(ANSWER)
    assert connection.to_server == b""
    assert connection.to_client.decode() == ANSWER + "\n"
    assert "a bug" in connection.relay.failure
