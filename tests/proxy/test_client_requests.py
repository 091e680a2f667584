"""What a server asks of the client: sampling, elicitation, roots."""

from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.refusals import DENIED, NOT_READABLE
from proxy.spans import JSON
from tests.proxy.deniedlines import code_of
from tests.proxy.wires import Wire, policy_of

DENYING: dict[str, JSON] = {"sampling": "deny", "elicitation": "allow"}
GUARDED = policy_of(client_requests=DENYING)
WATCHED = policy_of(client_requests=DENYING, mode="observe")
SAMPLE = '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}'
ELICIT = '{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{}}'
ROOTS = '{"jsonrpc":"2.0","id":3,"method":"roots/list"}'
ANSWER = '{"jsonrpc":"2.0","id":1,"result":{}}'
NOTE = '{"jsonrpc":"2.0","method":"notifications/x"}'


def answered(connection: Wire) -> list[tuple[str, JSON]]:
    import json

    replies = [json.loads(line) for line in connection.to_server.splitlines()]
    return [(json.dumps(reply["id"]), code_of(reply)) for reply in replies]


def test_a_denied_request_is_answered_to_the_server_and_never_reaches_the_client(tmp_path: Path) -> None:
    connection = Wire(tmp_path, GUARDED)
    connection.server(SAMPLE)
    assert connection.to_client == b""
    assert answered(connection) == [("1", DENIED)]
    decision, request = connection.only("decision"), connection.only("request")
    assert decision.attributes[v.DECISION] == "deny"
    assert decision.attributes[v.DIRECTION] == "server_to_client"
    assert decision.attributes[v.REQUEST] == SAMPLE
    assert decision.parent_id == request.span_id
    assert request.attributes[v.OUTCOME] == "denied"
    assert request.attributes[v.REFUSED_BY_US] is True


@pytest.mark.parametrize("line", [ELICIT, ROOTS, '{"jsonrpc":"2.0","id":4,"method":"ping"}', NOTE, "a banner"])
def test_every_other_line_passes(tmp_path: Path, line: str) -> None:
    connection = Wire(tmp_path, GUARDED)
    connection.server(line)
    assert connection.to_client.decode() == line + "\n"
    assert connection.to_server == b""


@pytest.mark.parametrize("line", [SAMPLE, ELICIT, ROOTS])
def test_without_a_rule_a_request_passes_with_a_decision_and_its_answer_ends_it(tmp_path: Path, line: str) -> None:
    connection = Wire(tmp_path)
    connection.server(line)
    assert connection.to_client.decode() == line + "\n"
    assert connection.only("decision").attributes[v.DECISION] == "allow"
    id_text = str(connection.only("decision").attributes[v.ID_TEXT])
    connection.client(f'{{"jsonrpc":"2.0","id":{id_text},"result":{{"a":1}}}}')
    request = connection.only("request")
    assert request.attributes[v.OUTCOME] == "ok"
    assert request.attributes[v.RESULT] == '{"a":1}'
    assert request.attributes[v.DIRECTION] == "server_to_client"


AMBIGUOUS = {
    "method twice": (SAMPLE.replace('"id":1', '"id":1,"method":"ping"'), ["1"]),
    "Method": (SAMPLE.replace('"method"', '"Method"'), ["1"]),
    "Method beside method": (SAMPLE.replace('"id":1', '"id":1,"Method":"ping"'), ["1"]),
    "bom": ("\ufeff" + SAMPLE, ["1"]),
    "NaN": (SAMPLE.replace(":1}", ":NaN}"), ["1"]),
    "id twice": (SAMPLE.replace('"id":1', '"id":1,"id":2'), []),
    "two on one line": (NOTE + SAMPLE, ["1"]),
    "nested array": (f"[[{SAMPLE}]]", ["1"]),
    "between carriage returns": (f'{{"jsonrpc":"2.0","id":9,"result":\r{SAMPLE}\r}}', []),
    "too deep": (SAMPLE.replace("[]", "[" * 3000 + "]" * 3000), ["1"]),
    "array with NaN": (f"[{SAMPLE},NaN]", ["1"]),
}


@pytest.mark.parametrize(("line", "ids"), AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_request_that_may_be_a_denied_one_is_refused(tmp_path: Path, line: str, ids: list[str]) -> None:
    connection = Wire(tmp_path, GUARDED)
    connection.server(line)
    assert connection.to_client == b""
    assert answered(connection) == [(one, NOT_READABLE) for one in ids]
    assert connection.only("decision").attributes[v.DECISION] == "deny"


@pytest.mark.parametrize(
    "method",
    [
        "Sampling/CreateMessage",
        "sampling/createMessage ",
        "sampling/createmessage\\u0000",
        "sam\\u0000pling/createMessage",
    ],
)
def test_a_method_that_folds_to_a_denied_one_is_denied(tmp_path: Path, method: str) -> None:
    connection = Wire(tmp_path, GUARDED)
    connection.server(SAMPLE.replace("sampling/createMessage", method))
    assert connection.to_client == b""
    assert answered(connection) == [("1", DENIED)]


def test_in_an_array_the_other_messages_go_on(tmp_path: Path) -> None:
    connection = Wire(tmp_path, GUARDED)
    connection.negotiate("2025-03-26")
    connection.client('{"jsonrpc":"2.0","id":1,"method":"ping"}')
    connection.to_server = b""
    connection.server(f"[ {SAMPLE} , {ANSWER} , {SAMPLE.replace(':1,', ':5,', 1)},{ELICIT}]\r")
    assert connection.to_client.decode() == f"[ {ANSWER},{ELICIT}]\r\n"
    assert answered(connection) == [("1", DENIED), ("5", DENIED)]
    outcomes = {span.attributes[v.METHOD]: span.attributes[v.OUTCOME] for span in connection.spans("request")}
    assert outcomes["ping"] == "ok"


def test_an_array_of_denied_requests_alone_leaves_nothing(tmp_path: Path) -> None:
    connection = Wire(tmp_path, GUARDED)
    connection.server(f"[{SAMPLE}]")
    assert connection.to_client == b""
    assert answered(connection) == [("1", DENIED)]


@pytest.mark.parametrize("line", [SAMPLE, f"[{SAMPLE}]", *(line for line, _ in AMBIGUOUS.values())])
def test_observed_only_all_of_them_pass(tmp_path: Path, line: str) -> None:
    connection = Wire(tmp_path, WATCHED)
    connection.server(line)
    assert connection.to_client.decode() == line + "\n"
    assert connection.to_server == b""
    assert not any(span.attributes[v.DECISION_ENFORCED] for span in connection.spans("decision"))


def test_observed_only_a_denied_request_is_recorded_as_such(tmp_path: Path) -> None:
    connection = Wire(tmp_path, WATCHED)
    connection.server(SAMPLE)
    assert connection.only("decision").attributes[v.DECISION] == "deny"
    connection.client('{"jsonrpc":"2.0","id":1,"result":{}}')
    assert connection.only("request").attributes[v.OUTCOME] == "ok"


def test_a_denied_request_without_an_id_is_dropped_and_recorded(tmp_path: Path) -> None:
    connection = Wire(tmp_path, GUARDED)
    connection.server(SAMPLE.replace('"id":1,', ""))
    assert (connection.to_client, connection.to_server) == (b"", b"")
    assert connection.only("decision").attributes[v.DECISION] == "deny"
