import json
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.judging import is_judged
from proxy.readings import readings
from proxy.refusals import DENIED, NOT_READABLE
from proxy.spans import JSON
from tests.proxy.deniedlines import DENIED_ONES, HEAD, NESTED, UNREADABLE, code_of, ids_answered
from tests.proxy.readers import calls_seen
from tests.proxy.wires import EVIL, OBSERVING, Wire, call, policy_of


@pytest.mark.parametrize(("line", "ids"), DENIED_ONES.values(), ids=DENIED_ONES.keys())
def test_a_denied_call_never_reaches_the_server_and_is_answered(tmp_path: Path, line: str, ids: list[JSON]) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(line)
    assert connection.to_server == b""
    assert ids_answered(connection.replies) == ids
    assert all(code_of(reply) == DENIED for reply in connection.replies)
    decision = connection.only("decision")
    assert decision.attributes[v.DECISION] == "deny"
    assert decision.attributes[v.DECISION_ENFORCED] is True
    assert decision.attributes[v.TOOL_CANONICAL] == "mcp/x/evil"
    assert decision.attributes[v.METHOD] == "tools/call"
    assert decision.attributes[v.REQUEST] == line.strip()
    assert decision.attributes[v.DECISION_RULE] == "deny mcp/x/evil"
    assert not any(key.startswith("gen_ai.") for key in decision.attributes)
    requests = connection.spans("request")
    assert len(requests) == len(ids)
    for request in requests:
        assert request.attributes[v.OUTCOME] == "denied"
        assert request.attributes[v.REFUSED_BY_US] is True
        assert decision.parent_id == request.span_id
        assert decision.attributes[v.SEQ] == request.attributes[v.SEQ]
    assert connection.relay.failure == ""


@pytest.mark.parametrize(("line", "ids"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_line_with_two_readings_never_reaches_the_server_and_is_answered(
    tmp_path: Path, line: bytes, ids: list[JSON]
) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(line + b"\n")
    assert connection.to_server == b""
    if b"1" * 5000 + b"," in line:  # an id longer than the integers of this test's reader
        assert f'"id":{"1" * 5000},'.encode() in connection.to_client
    else:
        assert ids_answered(connection.replies) == ids
        for reply in connection.replies:
            assert isinstance(reply, list) == line.startswith(b"[")
            for one in reply if isinstance(reply, list) else [reply]:
                assert code_of(one) == NOT_READABLE
    (decision,) = connection.spans("decision")
    assert decision.attributes[v.DECISION] == "deny"
    assert decision.attributes[v.DECISION_ENFORCED] is True
    text = decision.attributes[v.REQUEST]
    assert isinstance(text, str)
    assert text.encode("utf-8", "surrogateescape").strip(b"\n") == line.strip(b"\n")
    assert connection.relay.failure == ""


NAMELESS = {"single quotes", "overlong slash", "not closed, and a colon missing"}


@pytest.mark.parametrize("kind", [kind for kind in UNREADABLE if kind not in NAMELESS])
def test_the_record_of_an_unreadable_line_gives_the_name_that_some_reader_sees(kind: str) -> None:
    names = {reading.name for reading in readings(UNREADABLE[kind][0] + b"\n")}
    assert "evil" in names


@pytest.mark.parametrize("line", [line for line, _ in UNREADABLE.values()], ids=UNREADABLE.keys())
def test_observed_only_the_same_lines_pass_and_are_recorded_as_denied(tmp_path: Path, line: bytes) -> None:
    connection = Wire(tmp_path, OBSERVING)
    connection.client(line + b"\n")
    assert connection.to_server == line + b"\n"
    assert connection.to_client == b""
    assert {span.attributes[v.DECISION_ENFORCED] for span in connection.spans("decision")} == {False}
    assert "deny" in {span.attributes[v.DECISION] for span in connection.spans("decision")}
    connection.end()
    assert {span.attributes[v.OUTCOME] for span in connection.spans("request")} <= {"unanswered"}


@pytest.mark.parametrize("line", [line for line, _ in UNREADABLE.values()], ids=UNREADABLE.keys())
def test_without_a_policy_the_same_lines_pass_with_a_decision(tmp_path: Path, line: bytes) -> None:
    connection = Wire(tmp_path)
    connection.client(line + b"\n")
    assert connection.to_server == line + b"\n"
    assert connection.to_client == b""
    if any(reading.name == "evil" and is_judged(reading.method) for reading in readings(line)):
        assert {span.attributes[v.DECISION] for span in connection.spans("decision")} == {"allow"}
    assert len(connection.spans()) > 1


@pytest.mark.parametrize("line", [line for line, _ in DENIED_ONES.values()], ids=DENIED_ONES.keys())
def test_observed_only_a_denied_call_passes_and_the_outcome_is_the_servers(tmp_path: Path, line: str) -> None:
    connection = Wire(tmp_path, OBSERVING)
    connection.client(line)
    assert connection.to_server == line.encode() + b"\n"
    decision = connection.only("decision")
    assert (decision.attributes[v.DECISION], decision.attributes[v.DECISION_ENFORCED]) == ("deny", False)
    connection.end()
    assert {span.attributes[v.OUTCOME] for span in connection.spans("request")} <= {"unanswered"}


def test_a_trailing_blank_names_another_tool(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(call("evil "))
    assert calls_seen(connection.to_server) == {("tools/call", "evil ")}
    closed = Wire(tmp_path, policy_of(default="deny", rules=[{"allow": "mcp/x/ok"}]))
    closed.client(call("evil "), call("ok"))
    assert calls_seen(closed.to_server) == {("tools/call", "ok")}


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["evil"]}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"evil"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["evil"]}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":null}}',
        '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"name":"evil"}}',
        '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"uri":"evil"}}',
    ],
)
def test_a_call_that_names_nothing_is_refused(tmp_path: Path, line: str) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(line)
    assert connection.to_server == b""
    assert [code_of(reply) for reply in connection.replies] == [DENIED]


@pytest.mark.parametrize(
    ("method", "params", "glob"),
    [
        ("resources/read", '{"uri":"file:///etc/x"}', "mcp/x/resource:file://*"),
        ("prompts/get", '{"name":"greet"}', "mcp/x/prompt:greet"),
    ],
)
def test_a_denied_resource_or_prompt_is_answered_by_an_error(
    tmp_path: Path, method: str, params: str, glob: str
) -> None:
    connection = Wire(tmp_path, policy_of(rules=[{"deny": glob}]))
    connection.client(f'{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{params}}}')
    assert connection.to_server == b""
    (reply,) = connection.replies
    assert isinstance(reply, dict)
    assert "error" in reply
    assert code_of(reply) == DENIED


@pytest.mark.parametrize(("form", "member"), [("tool_error", "result"), ("error", "error"), ("hidden", "result")])
def test_a_rule_says_how_the_refusal_looks(tmp_path: Path, form: str, member: str) -> None:
    connection = Wire(tmp_path, policy_of(rules=[{"deny": "mcp/x/*", "as": form, "reason": "never, ünd so"}]))
    connection.client(call())
    (reply,) = connection.replies
    assert isinstance(reply, dict)
    assert member in reply
    assert "never, ünd so" in json.dumps(reply, ensure_ascii=False)


@pytest.mark.parametrize(
    ("negotiated", "meta", "complete"),
    [
        ("2025-11-25", "{}", False),
        ("2025-11-25", '{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}', True),
        (None, '{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}', True),
        (None, "{}", False),
    ],
)
def test_a_refusal_is_complete_in_the_new_era_only(
    tmp_path: Path, negotiated: str | None, meta: str, complete: bool
) -> None:
    connection = Wire(tmp_path, EVIL)
    if negotiated is not None:
        connection.negotiate(negotiated)
    connection.client(f'{{{HEAD},"params":{{"name":"evil","_meta":{meta}}}}}')
    (reply,) = connection.replies
    assert isinstance(reply, dict)
    result = reply["result"]
    assert isinstance(result, dict)
    assert result.get("resultType") == ("complete" if complete else None)


@pytest.mark.parametrize(
    "text", ["1", "1.0", "1e0", '"1"', '"\\u0031"', "-0", "1.50", "123456789012345678901234567890"]
)
def test_the_id_is_echoed_as_its_text(tmp_path: Path, text: str) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(call(id_text=text))
    assert f'"id":{text},'.encode() in connection.to_client


def test_an_error_in_policy_refuses_the_call(tmp_path: Path) -> None:
    policy = policy_of(rules=[{"allow": "mcp/x/ok", "arguments": {"properties": {}}}, {"deny": "mcp/*/*"}])

    def broken(_: JSON) -> bool:
        raise RuntimeError("no")

    object.__setattr__(policy.rules[0], "fits", broken)
    connection = Wire(tmp_path, policy)
    connection.client(call("ok"))
    assert connection.to_server == b""
    assert [code_of(reply) for reply in connection.replies] == [DENIED]
    assert connection.only("decision").attributes[v.DECISION_RULE] == "policy error"


@pytest.mark.parametrize("case", NESTED)
def test_a_denied_call_inside_a_message_is_refused_recorded_and_answered(tmp_path: Path, case: str) -> None:
    line, ids = NESTED[case]
    connection = Wire(tmp_path, EVIL)
    connection.client(line + b"\n")
    assert connection.to_server == b""
    assert ids_answered(connection.replies) == ids
    assert all(code_of(reply) == NOT_READABLE for reply in connection.replies)
    request = connection.only("decision").attributes[v.REQUEST]
    assert ("tools/call", "evil") in [(one.method.lower(), one.name) for one in readings(str(request).encode())]


@pytest.mark.parametrize("case", NESTED)
def test_without_a_policy_a_call_inside_a_message_is_data(tmp_path: Path, case: str) -> None:
    line, _ = NESTED[case]
    connection = Wire(tmp_path)
    connection.client(line + b"\n")
    assert connection.to_server == line + b"\n"


@pytest.mark.parametrize("case", NESTED)
def test_an_allowed_call_inside_a_message_is_data(tmp_path: Path, case: str) -> None:
    line = NESTED[case][0].replace(b'"evil"', b'"fine"')
    connection = Wire(tmp_path, EVIL)
    connection.client(line + b"\n")
    assert connection.to_server == line + b"\n"
