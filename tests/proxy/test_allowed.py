"""Traffic that a policy in force has nothing against is never refused, whatever it looks like."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy import vocabulary as v
from tests.proxy.test_bytes import json_values
from tests.proxy.wires import EVIL, Wire, call, wire

ALLOWED = [
    call("ok", arguments='{"name":"evil","Name":"evil","NAME":1,"straße":1,"STRASSE":2}'),
    call("ok", arguments='{"a\\u0000":1,"a":2,"\\u0000":3}'),
    call("ok", arguments='{"method":"tools/call","params":{"name":"evil"}}'),
    call("ok", arguments='{"text":"{\\"method\\":\\"tools/call\\",\\"params\\":{\\"name\\":\\"evil\\"}}"}'),
    call("ok", arguments='{"ключ":"значение","键":"值","emoji":"😀","escaped":"\\ud83d\\ude00","ls":"\u2028"}'),
    call("ok", arguments="[" * 800 + "]" * 800),
    call("ok", arguments='{"a":' * 300 + "1" + "}" * 300),
    call("ok", arguments='{"n":1e400,"m":-0.0,"i":123456789012345678901234567890}'),
    call("ok", arguments='{"n":' + "1" * 4000 + "}"),
    call("ok", arguments='{"text":"a\\\\ud800 is no surrogate"}'),
    call("ok", arguments='\r{"method":"GET",\r"name":"evil"\r}\r'),
    call("evil2"),
    call("Evil"),
    call("evil\\u0000"),
    call("a/evil"),
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","_meta":{"progressToken":1,"com.vendor/X":{"id":1,'
    '"ID":2},"traceparent":"garbage"},"task":{"ttl":1}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","vendorName":"evil","uris":[],"names":1}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok"},"vendor":{"Name":"evil"},"com.x":1}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"evil"}}',
    '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"evil"},'
    '"argument":{"name":"evil","value":""},"context":{"arguments":{}}}}',
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"evil"}}',
    '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"evil"}}',
    '{"jsonrpc":"2.0","id":1,"method":"vendor/anything","params":{"name":"evil","x":[1]}}',
    '{"jsonrpc":"2.0","id":1,"method":"vendor/list","params":[{"name":"evil"}]}',
    '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"evil"}}',
    '{"jsonrpc":"2.0","id":9,"result":{"role":"assistant","content":{"type":"text","text":"evil"},"model":"m"}}',
    '{"jsonrpc":"2.0","id":9,"result":{"method":"tools/call","params":{"name":"evil"}}}',
    '{"jsonrpc":"2.0","id":9,"error":{"code":-1,"message":"user rejected"}}',
    '{"jsonrpc":"2.0","id":1,"method":"x","params":{"I":1,"ı2":2}}',
    "\r",
    "  ",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_policy_has_nothing_against_goes_on_as_it_is(tmp_path: Path, text: str) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(text)
    assert connection.to_server == text.encode() + b"\n"
    assert connection.to_client == b""
    assert [s for s in connection.spans("decision") if s.attributes[v.DECISION] == "deny"] == []
    assert connection.relay.failure == ""


tool_names = st.text(max_size=6).filter(lambda name: name != "evil")
arguments = st.dictionaries(st.text(max_size=6), json_values, max_size=4)


@settings(max_examples=200, deadline=None)
@given(tool_names, arguments, st.booleans(), st.sampled_from([None, 0, 2]))
def test_every_other_tool_can_be_called_with_any_arguments(
    name: str, given_arguments: dict[str, object], ascii_only: bool, indent: int | None
) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": given_arguments},
    }
    text = json.dumps(message, ensure_ascii=ascii_only, indent=indent).replace("\n", "\r")
    with wire(EVIL) as connection:
        connection.client(text)
        assert connection.to_server == text.encode() + b"\n"
        assert connection.to_client == b""
        decision = connection.only("decision")
        assert decision.attributes[v.DECISION] == "allow"
        assert decision.attributes[v.REQUEST] == text
