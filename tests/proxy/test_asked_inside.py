"""What a server asks of its client inside of answers, errors and notifications is judged wherever it stands."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.convert import convert
from proxy import vocabulary as v
from proxy.askedinside import asked_inside
from proxy.policy import Policy
from proxy.spans import JSON
from tests.proxy.wires import Wire, call, policy_of

ELICITATION = "elicitation/create"
DENIED = policy_of(client_requests={"elicitation": "deny"})
REQUESTS: dict[str, JSON] = {"inputRequests": {"k": {"method": ELICITATION, "params": {"message": "your password?"}}}}
BY_URL: dict[str, JSON] = {
    "code": -32042,
    "message": "first look there",
    "data": {"elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://x.example", "message": "look"}]},
}
STATE: dict[str, JSON] = {"taskId": "t", "status": "input_required", **REQUESTS}
FAILED: dict[str, JSON] = {"taskId": "t", "status": "failed", "error": BY_URL}

ANSWERS: dict[str, dict[str, JSON]] = {
    "an interim result": {"result": {"resultType": "input_required", **REQUESTS}},
    "an error by url": {"error": BY_URL},
    "an error of another code": {"error": {**BY_URL, "code": 1}},
    "a task's state": {"result": STATE},
    "a task in a result": {"result": {"task": STATE}},
    "a failed task": {"result": FAILED},
    "the result of a task": {"result": {"taskId": "t", "status": "completed", "result": REQUESTS}},
}
NEWS: dict[str, dict[str, JSON]] = {
    "a task's news": {"method": "notifications/tasks", "params": STATE},
    "older news of a task": {"method": "notifications/tasks/status", "params": {"task": STATE}},
    "news of a failed task": {"method": "notifications/tasks", "params": FAILED},
}


def of(fields: dict[str, JSON], number: int | None = 1) -> str:
    own: dict[str, JSON] = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **own, **fields}, separators=(",", ":"))


def asks(method: str) -> str:
    return f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"taskId":"t"}}}}'


SPELLINGS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda line: line.encode(),
    "escaped": lambda line: (
        line.replace("equests", "equ\\u0065sts").replace("licitations", "licit\\u0061tions").encode()
    ),
    "in another case": lambda line: line.replace("inputR", "INPUTr").replace("elicitations", "ELICITATIONS").encode(),
    "in utf-16": lambda line: line.encode("utf-16"),
    "behind another": lambda line: b'{"jsonrpc":"2.0","method":"notifications/x"}' + line.encode(),
    "between carriage returns": lambda line: b'{"x":\r' + line.encode() + b"\r}",
    "in an array": lambda line: f"[{line}]".encode(),
    "too deep": lambda line: line.replace("{", '{"a":' + "[" * 5000 + "]" * 5000 + ",", 1).encode(),
}


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize("fields", [*ANSWERS.values(), *NEWS.values()], ids=[*ANSWERS, *NEWS])
def test_none_of_it_reaches_the_client_where_it_is_denied(
    tmp_path: Path, fields: dict[str, JSON], spelled: str
) -> None:
    wire = Wire(tmp_path, DENIED)
    wire.client(call("ok"))
    wire.server(SPELLINGS[spelled](of(fields, None if "method" in fields else 1)) + b"\n")
    assert b"password" not in wire.to_client
    assert b"x.example" not in wire.to_client
    wire.end()
    asked = [event.fields for event in convert(wire.spans()).events if event.type == "mcp_client_request"]
    assert [(one["method"], one["outcome"]) for one in asked] == [(ELICITATION, "denied")]


@pytest.mark.parametrize("policy", [None, policy_of(client_requests={"sampling": "deny"})], ids=["none", "another"])
@pytest.mark.parametrize("fields", [*ANSWERS.values(), *NEWS.values()], ids=[*ANSWERS, *NEWS])
def test_where_it_is_not_denied_it_passes_as_it_is(
    tmp_path: Path, fields: dict[str, JSON], policy: Policy | None
) -> None:
    wire = Wire(tmp_path, policy)
    wire.client(call("ok"))
    line = of(fields, None if "method" in fields else 1)
    wire.server(line)
    assert wire.to_client.decode() == line + "\n"
    wire.end()


@pytest.mark.parametrize(
    ("method", "name"), [("tools/call", "an error by url"), ("tasks/get", "a task's state"), ("", "a task's news")]
)
def test_it_has_a_decision_before_it_goes_on(tmp_path: Path, method: str, name: str) -> None:
    fields = {**ANSWERS, **NEWS}[name]
    wire = Wire(tmp_path)
    if method:
        wire.client(asks(method))
    wire.relay.from_server(of(fields, 1 if method else None).encode() + b"\n")
    inside = [one for one in wire.spans("decision") if one.attributes[v.METHOD] == ELICITATION]
    assert [one.attributes[v.DECISION] for one in inside] == ["allow"]
    wire.end()


def test_a_tools_own_content_asks_nothing(tmp_path: Path) -> None:
    wire = Wire(tmp_path, DENIED)
    wire.client(call("ok"))
    content: JSON = [{"type": "text", "text": of({"result": REQUESTS})}]
    line = of({"result": {"content": content, "structuredContent": {"rows": [REQUESTS], "data": BY_URL["data"]}}})
    wire.server(line, of({"method": "notifications/message", "params": {"data": BY_URL["data"]}}, None))
    assert wire.to_client.decode().splitlines()[0] == line
    assert len(wire.to_client.splitlines()) == 2
    wire.end()


HOLDERS = st.lists(st.sampled_from(["result", "task", "params", "error", "Result", "TASK"]), min_size=1, max_size=4)


@given(HOLDERS, st.booleans(), st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3), max_size=3))
def test_it_is_found_at_any_depth_of_what_may_bear_it(holders: list[str], wide: bool, beside: dict[str, JSON]) -> None:
    value: JSON = {**beside, **REQUESTS}
    for holder in reversed(holders):
        value = {**beside, holder: value}
    text = json.dumps(value, ensure_ascii=False)
    raw = text.encode("utf-16" if wide else "utf-8", "surrogatepass")
    assert asked_inside(raw) == (ELICITATION,)


@given(st.binary(max_size=60))
def test_no_bytes_break_the_search(data: bytes) -> None:
    asked_inside(data)
    asked_inside(b'{"result":{"inputRequests":' + data)
