import json
from collections import deque
from dataclasses import dataclass, field

import pytest

from harness.targets.client import Answer, Client, ProtocolError, ServerEndedError
from harness.targets.deadline import Deadline
from proxy.spans import JSON


@dataclass
class Wire:
    """A channel whose other side was written beforehand."""

    incoming: deque[bytes]
    sent: list[dict[str, JSON]] = field(default_factory=list)
    deadline: Deadline = field(default_factory=lambda: Deadline.after(30))

    def send(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.sent.append(json.loads(line))

    def receive(self) -> bytes:
        if not self.incoming:
            raise ServerEndedError("server crm ended")
        return self.incoming.popleft()

    def close_input(self) -> None:
        pass

    def close(self) -> None:
        pass


def client(*incoming: str) -> tuple[Client, Wire]:
    wire = Wire(deque(line.encode() for line in incoming))
    return Client("crm", wire), wire


def answer(request_id: int, result: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{request_id},"result":{result}}}'


def test_initialize_opens_the_connection_in_two_frames() -> None:
    it, wire = client(answer(1, '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}'))
    it.initialize()
    assert [frame["method"] for frame in wire.sent] == ["initialize", "notifications/initialized"]
    assert "id" not in wire.sent[1]
    assert it.capabilities == {"tools": {}}


def test_a_refused_initialize_is_a_protocol_error_that_says_what_the_server_said() -> None:
    it, _ = client('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such version"}}')
    with pytest.raises(ProtocolError, match=r"crm.*no such version"):
        it.initialize()


def test_banners_blank_lines_and_notifications_are_passed_over() -> None:
    it, _ = client("", "Server v1 ready", '{"jsonrpc":"2.0","method":"notifications/message"}', "[]", answer(1, "{}"))
    assert it.request("ping", {}) == Answer(result={})


def test_a_server_request_is_answered_with_method_not_found() -> None:
    it, wire = client('{"jsonrpc":"2.0","id":"s","method":"roots/list"}', answer(1, "{}"))
    it.request("tools/call", {})
    assert wire.sent[1]["id"] == "s"
    assert wire.sent[1]["error"] == {"code": -32601, "message": "Method not found"}


def test_a_ping_is_answered() -> None:
    it, wire = client('{"jsonrpc":"2.0","id":7,"method":"ping"}', answer(1, "{}"))
    it.request("tools/call", {})
    assert wire.sent[1] == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_an_answer_to_another_id_is_not_taken() -> None:
    it, _ = client('{"jsonrpc":"2.0","id":true,"result":{"no":1}}', answer(9, '{"no":2}'), answer(1, '{"yes":1}'))
    assert it.request("tools/call", {}).result == {"yes": 1}


def test_an_answer_without_result_and_error_is_a_protocol_error() -> None:
    it, _ = client('{"jsonrpc":"2.0","id":1,"result":"text"}')
    with pytest.raises(ProtocolError, match="tools/call"):
        it.call_tool("x", {})


def test_the_end_of_the_server_is_a_typed_error() -> None:
    it, _ = client()
    with pytest.raises(ServerEndedError):
        it.call_tool("x", {})


def test_all_pages_of_tools_are_read_and_a_cursor_that_repeats_ends_it() -> None:
    it, wire = client(
        answer(1, '{"capabilities":{"tools":{}}}'),
        answer(2, '{"tools":[{"name":"a"}],"nextCursor":"p"}'),
        answer(3, '{"tools":[{"name":"b"}],"nextCursor":"p"}'),
    )
    it.initialize()
    assert it.list_tools() == ("a", "b")
    assert wire.sent[-1]["params"] == {"cursor": "p"}


def test_a_server_without_tools_is_not_asked_for_them() -> None:
    it, wire = client()
    assert it.list_tools() == ()
    assert wire.sent == []


@pytest.mark.parametrize(
    ("given", "failed", "text"),
    [
        (Answer(result={"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), False, "a\nb"),
        (Answer(result={"isError": True, "content": [{"type": "image"}]}), True, ""),
        (Answer(error={"code": 1, "message": "no"}), True, "no"),
        (Answer(result={"content": "nonsense"}), False, ""),
    ],
)
def test_an_answer_says_whether_it_failed_and_its_text(given: Answer, failed: bool, text: str) -> None:
    assert (given.failed, given.text) == (failed, text)
