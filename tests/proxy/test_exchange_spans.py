"""What the spans of an exchange and of its connection say, and what their parent is."""

import hashlib
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.spans import ERROR, INTERNAL, SERVER, UNSET
from tests.proxy.wires import OBSERVING, Wire, answer, by_id, call, failure, ping


def test_the_record_has_the_order_of_the_wire(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a", id_text="1"))
    connection.server('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"\\u0031"}}')
    connection.client(call("b", id_text="2"))
    connection.server(answer("2"), answer("1"))
    connection.end()
    seqs = [(s.name, s.attributes[v.SEQ], s.attributes.get(v.RESULT_SEQ)) for s in connection.spans()]
    assert seqs == [
        ("connection.opened", 1, None),
        ("decision tools/call", 2, None),
        ("notifications/progress", 3, None),
        ("decision tools/call", 4, None),
        ("tools/call b", 4, 5),
        ("tools/call a", 2, 6),
        ("mcp.connection x", 7, None),
    ]
    monos = sorted((int(s.attributes[v.SEQ]), int(s.attributes[v.MONO])) for s in connection.spans())
    assert [mono for _, mono in monos] == sorted(mono for _, mono in monos)
    for span in connection.spans("request"):
        assert int(span.attributes[v.MONO]) <= int(span.attributes[v.RESULT_MONO])
        assert span.start_ns <= span.end_ns


def test_a_call_is_recorded_with_the_exact_text_of_what_crossed(tmp_path: Path) -> None:
    connection = Wire(tmp_path, OBSERVING)
    arguments = '{ "a" : 1E2 ,"b":"\\u00e9é"}'
    connection.client(call("ok", id_text='"x\\u0031"', arguments=arguments))
    result = '{"content" : [ ],"n":-0.0}'
    connection.server(answer('"x1"', result))
    span = connection.only("request")
    digest = hashlib.sha256(arguments.encode()).hexdigest()
    assert (span.name, span.kind, span.status) == ("tools/call ok", SERVER, UNSET)
    expected = {
        v.METHOD: "tools/call",
        v.REQUEST_ID: "x1",
        v.ID_TEXT: '"x\\u0031"',
        v.OPERATION: "execute_tool",
        v.TOOL_NAME: "ok",
        v.TOOL_CANONICAL: "mcp/x/ok",
        v.TOOL_ARGUMENTS: arguments,
        v.payload_bytes("arguments"): len(arguments.encode()),
        v.payload_sha256("arguments"): digest,
        v.TOOL_RESULT: result,
        v.payload_bytes("result"): len(result),
        v.OUTCOME: "ok",
        v.SERVER_ID: "x",
        v.SERVER_TRUST: "third_party",
        v.TRANSPORT: "stdio",
        v.NETWORK_TRANSPORT: "pipe",
        v.RUN_ID: "run",
        v.SCENARIO_ID: "scenario",
        v.TRIAL: 2,
        v.AGENT_ID: "agent",
        v.CONNECTION: "c1",
    }
    assert {key: span.attributes[key] for key in expected} == expected
    assert v.payload_truncated("arguments") not in span.attributes


def test_a_tools_name_is_encoded_in_its_canonical_name_only(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a/b:c%"))
    decision = connection.only("decision")
    assert decision.attributes[v.TOOL_CANONICAL] == "mcp/x/a%2Fb%3Ac%25"
    connection.end()
    assert connection.only("request").attributes[v.TOOL_NAME] == "a/b:c%"


def test_resources_and_prompts_have_canonical_names(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client('{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a"}}')
    connection.client('{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"greet","arguments":{"a":"b"}}}')
    connection.end()
    read, get = connection.spans("request")
    assert (read.name, read.attributes[v.RESOURCE_URI]) == ("resources/read", "file:///a")
    assert read.attributes[v.TOOL_CANONICAL] == "mcp/x/resource:file:///a"
    assert (get.name, get.attributes[v.PROMPT_NAME]) == ("prompts/get greet", "greet")
    assert get.attributes[v.TOOL_CANONICAL] == "mcp/x/prompt:greet"
    assert get.attributes[v.PARAMS] == '{"name":"greet","arguments":{"a":"b"}}'


@pytest.mark.parametrize("code", ["-32700", "-32600", "-32601", "-32602", "-32002"])
def test_an_error_that_is_the_callers_fault_leaves_the_span_without_one(tmp_path: Path, code: str) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a"))
    connection.server(failure(code))
    span = connection.only("request")
    assert (span.status, span.attributes[v.OUTCOME]) == (UNSET, "protocol_error")
    assert span.attributes[v.STATUS_CODE] == code
    assert v.ERROR_TYPE not in span.attributes


@pytest.mark.parametrize("code", ["-32603", "10001", "0", '"x"', "[]", "{}", "true", "null"])
def test_any_other_error_is_the_spans_status(tmp_path: Path, code: str) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a"))
    connection.server(failure(code))
    span = connection.only("request")
    assert (span.status, span.message, span.attributes[v.OUTCOME]) == (ERROR, "no", "protocol_error")
    assert span.attributes[v.ERROR_TYPE] == (code if code.lstrip("-").isdigit() else "_OTHER")
    assert span.attributes[v.RESULT] == f'{{"code":{code},"message":"no"}}'


def test_a_tools_own_error_is_a_tool_error(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a"), ping("2"), call("b", id_text="3"))
    connection.server(answer("1", '{"isError":true}'), answer("2", '{"isError":true}'), answer("3", '{"isError":1}'))
    outcomes = {
        text: (s.attributes[v.OUTCOME], s.attributes.get(v.ERROR_TYPE)) for text, s in by_id(connection).items()
    }
    assert outcomes == {"1": ("tool_error", "tool_error"), "2": ("ok", None), "3": ("ok", None)}


def test_a_result_beside_an_error_that_is_null_is_no_error(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a"))
    connection.server('{"id":1,"result":{"n":1},"error":null}')
    assert connection.only("request").attributes[v.OUTCOME] == "ok"
    assert connection.only("request").attributes[v.TOOL_RESULT] == '{"n":1}'


TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def traced(text: str) -> str:
    meta = f'"params":{{"name":"a","_meta":{{"traceparent":{text}}}}}'
    return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call",{meta}}}'


def test_a_valid_traceparent_is_the_parent_and_the_link_leads_to_the_connection(tmp_path: Path) -> None:
    connection = Wire(tmp_path, parent=True)
    line = traced(f'"00-{TRACE}-{PARENT}-01"')
    connection.client(line)
    connection.end()
    request, decision, closed = (connection.only(kind) for kind in ("request", "decision", "connection_closed"))
    assert (request.trace_id, request.parent_id) == (TRACE, PARENT)
    assert (decision.trace_id, decision.parent_id) == (TRACE, request.span_id)
    assert all(span.links == ((closed.trace_id, closed.span_id),) for span in connection.spans())
    assert connection.to_server == line.encode() + b"\n"


@pytest.mark.parametrize(
    "text", ['"garbage"', "1", "null", f'"00-{TRACE.upper()}-{PARENT}-01"', f'"00-{TRACE}-{"0" * 16}-01"']
)
def test_a_malformed_traceparent_fails_nothing(tmp_path: Path, text: str) -> None:
    connection = Wire(tmp_path, parent=True)
    connection.client(traced(text))
    connection.end()
    assert connection.to_server == traced(text).encode() + b"\n"
    request = connection.only("request")
    assert (request.trace_id, request.parent_id) == ("a" * 32, "b" * 16)


def test_without_a_context_the_connection_is_the_parent(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a"))
    connection.end()
    closed, opened = connection.only("connection_closed"), connection.only("connection_opened")
    request = connection.only("request")
    assert closed.parent_id == ""
    assert request.parent_id == opened.parent_id == closed.span_id
    assert {span.trace_id for span in connection.spans()} == {closed.trace_id}
    assert (opened.kind, closed.kind) == (INTERNAL, INTERNAL)


def test_the_end_of_a_connection_says_what_it_was(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.negotiate("2025-06-18")
    connection.client(call("a"))
    connection.end("server_ended")
    closed = connection.only("connection_closed")
    assert closed.attributes[v.PROTOCOL_VERSION] == "2025-06-18"
    assert closed.attributes[v.CLOSE_REASON] == "server_ended"
    assert closed.attributes[v.SPANS_RECORDED] == len(connection.spans())
    assert closed.attributes[v.SPANS_DROPPED] == 0
    assert v.DIRECTION not in closed.attributes
    assert by_id(connection)["1"].attributes[v.PROTOCOL_VERSION] == "2025-06-18"


def test_a_version_that_a_server_refused_is_not_negotiated(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    connection.client(f'{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{meta}}}}}')
    connection.server(failure("-32601"))
    connection.end()
    assert v.PROTOCOL_VERSION not in connection.only("connection_closed").attributes


def test_in_the_new_era_the_first_answer_settles_the_version(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    connection.client(f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}')
    connection.server(answer("1"))
    connection.end()
    assert connection.only("connection_closed").attributes[v.PROTOCOL_VERSION] == "2026-07-28"
