"""Lines past what is looked at; the cap is made small here but for one case of each direction."""

import json
from pathlib import Path

import pytest

from harness.convert import convert
from harness.outcomes import is_executed
from proxy import frames, longlines, readings, record, relay
from proxy import vocabulary as v
from proxy.policy import Policy
from proxy.refusals import NOT_READABLE, RECORDER_FAILED
from tests.proxy.deniedlines import code_of, ids_answered
from tests.proxy.test_client_requests import GUARDED, answered
from tests.proxy.wires import ALLOWING, EVIL, OBSERVING, Wire, call, policy_of

SMALL = 2000
HIDING = policy_of(rules=[{"deny": "mcp/x/evil", "as": "hidden"}])


@pytest.fixture
def small_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (frames, longlines, readings, record, relay):
        monkeypatch.setattr(module, "CAP", SMALL)
    monkeypatch.setattr(relay, "HELD_FROM_SERVER", 100)


def padded(before: str, after: str, size: int = 5000) -> bytes:
    return f'{{{before},"pad":"{"x" * size}",{after}}}\n'.encode()


METHOD_LAST = padded('"jsonrpc":"2.0","id":1,"params":{"name":"evil","arguments":{}}', '"method":"tools/call"')
METHOD_FIRST = padded('"jsonrpc":"2.0","method":"tools/call"', '"params":{"arguments":{},"name":"evil"},"id":"a"')


def fed(connection: Wire, line: bytes, size: int) -> None:
    for at in range(0, len(line), size):
        connection.client(line[at : at + size])


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("size", [1, 7, 1999, 2001, 100_000])
@pytest.mark.parametrize(("line", "id_value"), [(METHOD_LAST, 1), (METHOD_FIRST, "a")])
@pytest.mark.parametrize("policy", [EVIL, ALLOWING], ids=["denying", "allowing"])
def test_with_a_policy_it_is_refused_once_its_end_has_come(
    tmp_path: Path, size: int, line: bytes, id_value: object, policy: Policy
) -> None:
    connection = Wire(tmp_path, policy)
    fed(connection, line[:-1], size)
    assert (connection.to_server, connection.to_client) == (b"", b"")
    connection.client(b"\n", call("ok"))
    assert connection.to_server.decode() == call("ok") + "\n"
    (reply,) = connection.replies
    assert ids_answered([reply]) == [id_value]
    assert code_of(reply) == NOT_READABLE
    refused = connection.spans("decision")[0]
    assert refused.attributes[v.DECISION] == "deny"
    assert refused.attributes[v.METHOD] == "tools/call"
    assert refused.attributes[v.TOOL_CANONICAL] == "mcp/x/evil"
    assert refused.attributes[v.payload_truncated("request")] is True
    assert refused.attributes[v.REQUEST] == line[:SMALL].decode()


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("size", [1, 7, 1999, 2001, 100_000])
@pytest.mark.parametrize("line", [METHOD_LAST, METHOD_FIRST])
@pytest.mark.parametrize("policy", [None, OBSERVING], ids=["none", "observing"])
def test_without_one_in_force_it_flows_behind_its_decision(
    tmp_path: Path, size: int, line: bytes, policy: Policy | None
) -> None:
    connection = Wire(tmp_path, policy)
    fed(connection, line[:SMALL], size)
    assert connection.to_server == b""
    connection.client(line[SMALL : SMALL + 1])
    assert connection.to_server == line[: SMALL + 1]
    assert connection.last.mid_line is True
    decision = connection.only("decision")
    assert decision.attributes[v.payload_truncated("request")] is True
    assert decision.attributes[v.DECISION] == ("allow" if policy is None else "deny")
    fed(connection, line[SMALL + 1 :], size)
    assert connection.to_server == line
    assert connection.last.mid_line is False
    id_text = "1" if line == METHOD_LAST else '"a"'
    connection.server(f'{{"jsonrpc":"2.0","id":{id_text},"result":{{}}}}')
    request = connection.only("request")
    assert decision.parent_id == request.span_id
    assert request.attributes[v.SEQ] == decision.attributes[v.SEQ]
    assert (request.name, request.attributes[v.OUTCOME]) == ("tools/call evil", "ok")
    assert request.attributes[v.payload_truncated("arguments")] is True


@pytest.mark.usefixtures("small_cap")
def test_a_record_that_fails_there_refuses_it_at_its_end(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.break_record()
    fed(connection, METHOD_LAST, 999)
    assert connection.to_server == b""
    assert [code_of(reply) for reply in connection.replies] == [RECORDER_FAILED]


@pytest.mark.usefixtures("small_cap")
def test_a_refused_array_is_answered_by_an_array(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.negotiate("2025-03-26")
    connection.client(b"[" + METHOD_LAST[:-1] + b"," + METHOD_FIRST[:-1] + b"]\n")
    (reply,) = connection.replies
    assert isinstance(reply, list)
    assert ids_answered([reply]) == [1, "a"]


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
def test_the_cap_counts_the_line_feed(tmp_path: Path, offset: int) -> None:
    bare = len(padded('"jsonrpc":"2.0","id":1', '"method":"ping"', 0))
    line = padded('"jsonrpc":"2.0","id":1', '"method":"ping"', SMALL - bare + offset)
    assert len(line) == SMALL + offset
    connection = Wire(tmp_path, EVIL)
    connection.client(line)
    assert connection.to_server == (line if offset <= 0 else b"")
    assert len(connection.replies) == (0 if offset <= 0 else 1)


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("id_text", ["null", "{}", "NaN", '1,"id":2', '1,"ID":1', "[1]"])
def test_without_one_usable_id_there_is_no_answer(tmp_path: Path, id_text: str) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(padded(f'"id":{id_text}', '"method":"tools/call"'))
    assert (connection.to_server, connection.to_client) == (b"", b"")
    assert connection.only("decision").attributes[v.DECISION] == "deny"


@pytest.mark.usefixtures("small_cap")
def test_an_unterminated_long_last_line_is_refused_or_flows(tmp_path: Path) -> None:
    refused, flows = Wire(tmp_path, EVIL), Wire(tmp_path)
    for connection in (refused, flows):
        connection.client(METHOD_LAST[:-1])
        connection.end()
    assert refused.to_server == b""
    assert flows.to_server == METHOD_LAST[:-1]


@pytest.mark.usefixtures("small_cap")
def test_a_clients_long_answer_ends_what_the_server_asked(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.server('{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}')
    line = padded('"jsonrpc":"2.0","id":1', '"result":{}')
    connection.client(line)
    assert connection.to_server == line
    assert connection.only("request").attributes[v.OUTCOME] == "ok"


LONG_ANSWER = padded('"jsonrpc":"2.0","id":1', '"result":{"isError":true}')


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("size", [1, 99, 1999, 100_000])
@pytest.mark.parametrize("policy", [None, EVIL], ids=["none", "denying"])
@pytest.mark.parametrize("long", [LONG_ANSWER, LONG_ANSWER.replace(b"x" * 4000, b"")])
def test_a_servers_long_line_flows_and_is_recorded(
    tmp_path: Path, size: int, policy: Policy | None, long: bytes
) -> None:
    connection = Wire(tmp_path, policy)
    connection.client(call("ok"))
    for at in range(0, len(long), size):
        connection.server(long[at : at + size])
        assert len(long) - len(connection.to_client) <= max(len(long) - at - size, 0) + 100
    assert connection.to_client == long
    request = connection.only("request")
    assert request.attributes[v.OUTCOME] == "tool_error"
    assert request.attributes.get(v.payload_truncated("result"), False) is (len(long) > SMALL)


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize(("code", "kind"), [("-32601", None), ("-32000", "-32000")])
def test_a_servers_long_error_is_an_error(tmp_path: Path, code: str, kind: str | None) -> None:
    connection = Wire(tmp_path)
    connection.client(call("ok"))
    connection.server(padded('"id":1', f'"error":{{"code":{code}}}'))
    request = connection.only("request")
    assert (request.attributes[v.OUTCOME], request.attributes[v.STATUS_CODE]) == ("protocol_error", code)
    assert request.attributes.get(v.ERROR_TYPE) == kind
    assert v.TOOL_RESULT not in request.attributes


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("policy", [HIDING, GUARDED], ids=["hiding", "guarding"])
def test_where_policy_edits_it_is_held_and_replaced(tmp_path: Path, policy: Policy) -> None:
    connection = Wire(tmp_path, policy)
    connection.client(call("ok"))
    connection.to_server = b""
    connection.server(LONG_ANSWER)
    (reply,) = connection.replies
    assert ids_answered([reply]) == [1]
    assert code_of(reply) == NOT_READABLE
    request = connection.only("request")
    assert request.attributes[v.REFUSED_BY_US] is True
    assert (request.attributes[v.OUTCOME], request.attributes[v.ERROR_TYPE]) == ("protocol_error", str(NOT_READABLE))
    assert v.TOOL_RESULT not in request.attributes
    (made,) = convert(connection.spans()).tool_calls
    assert (made.outcome, made.is_error, made.result) == ("protocol_error", True, None)
    # The server has done it, whatever stands for its answer.
    assert (made.server_outcome, is_executed(made)) == ("unanswered", True)
    connection.to_client = b""
    connection.server(padded('"id":5', '"method":"sampling/createMessage"'))
    assert connection.to_client == b""
    assert answered(connection) == [("5", NOT_READABLE)]


@pytest.mark.usefixtures("small_cap")
def test_a_servers_long_request_flows_with_a_decision_and_is_answered(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    line = padded('"jsonrpc":"2.0","id":5', '"method":"sampling/createMessage"')
    connection.server(line)
    assert connection.to_client == line
    assert connection.only("decision").attributes[v.METHOD] == "sampling/createMessage"
    connection.client('{"jsonrpc":"2.0","id":5,"result":{}}')
    assert connection.only("request").span_id == connection.only("decision").parent_id


@pytest.mark.usefixtures("small_cap")
def test_a_servers_long_banner_flows_and_is_recorded_as_malformed(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.server(b"b" * 5000 + b"\n")
    assert connection.to_client == b"b" * 5000 + b"\n"
    assert connection.only("malformed").attributes[v.REQUEST] == "b" * SMALL


def test_a_call_of_twenty_megabytes_is_refused_with_a_policy_and_flows_without(tmp_path: Path) -> None:
    pad = b"x" * 20_000_000
    line = b'{"jsonrpc":"2.0","id":1,"params":{"name":"evil"},"pad":"' + pad + b'","method":"tools/call"}\n'
    refusing, flowing = Wire(tmp_path, EVIL), Wire(tmp_path)
    for connection in (refusing, flowing):
        fed(connection, line, 262_144)
    assert refusing.to_server == b""
    assert [code_of(reply) for reply in refusing.replies] == [NOT_READABLE]
    assert flowing.to_server == line
    recorded = flowing.only("decision").attributes
    assert recorded[v.payload_bytes("request")] == 16 * 1024 * 1024


@pytest.mark.parametrize("offset", [0, 1])
def test_the_real_cap_is_sixteen_mebibytes(tmp_path: Path, offset: int) -> None:
    bare = len(call("ok", arguments='""')) + 1
    text = call("ok", arguments=json.dumps("x" * (16 * 1024 * 1024 - bare + offset)))
    connection = Wire(tmp_path, EVIL)
    connection.client(text)
    assert bool(connection.to_server) is (offset == 0)
    assert len(connection.replies) == offset
