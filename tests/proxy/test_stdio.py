"""The proxy over stdio with real processes: what goes in and out, how it starts and how it ends."""

import json
from pathlib import Path

import pytest

from proxy import vocabulary as v
from tests.proxy.deniedlines import DENIED_ONES, NESTED, UNREADABLE
from tests.proxy.stdiowire import Wire, call, finish, read_line

pytestmark = pytest.mark.measured
ODD_LINES = [
    b'{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"z":1,"a":{"q":1E2,"w":-0.0}},"extra":{"deep":[{"u":null}]}}\n',
    b'{"id":9007199254740993,"method":"x","params":{"n":123456789012345678901234567890},"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","id":"","method":"x"}\r\n',
    b"\n",
    b'{"jsonrpc":"2.0","id":"1","method":"x","params":{"t":"\xe2\x80\xa8"}}\n',
    b'{"jsonrpc":"2.0",\r"id":1.0,\r"method":"x"}\n',
    b'{"jsonrpc":"2.0","id":null,"method":"x"}\n',
    b'{"jsonrpc":"2.0","id":0,"method":"x"}',
]


@pytest.mark.parametrize("options", [(), ("--deny", "mcp/x/evil")], ids=["no policy", "a policy that allows"])
def test_what_the_client_sends_is_what_the_server_gets(wire: Wire, options: tuple[str, ...]) -> None:
    finish(wire.start("silent", options=options), b"".join(ODD_LINES))
    assert wire.logged() == b"".join(ODD_LINES)


def test_what_the_server_says_is_what_the_client_gets(wire: Wire, tmp_path: Path) -> None:
    said = b"a banner\n\xff\xfe not text\n" + b"".join(ODD_LINES[:-1])
    said += b'{"big":"' + b"x" * (20 * 1024 * 1024) + b'"}\n' + ODD_LINES[-1]
    (tmp_path / "said").write_bytes(said)
    out, _ = finish(wire.start("say", str(tmp_path / "said")))
    assert out == said


def test_a_line_of_20_mb_reaches_the_server_where_no_policy_is_in_force(wire: Wire) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"t":"%s"}}}\n' % (
        b"x" * (20 * 1024 * 1024)
    )
    finish(wire.start("silent"), line)
    assert wire.logged() == line
    (decision,) = wire.spans("decision")
    assert decision.attributes["wiretrap.request.truncated"] is True
    assert decision.attributes[v.METHOD] == "tools/call"


def test_a_line_of_20_mb_is_refused_and_answered_where_a_policy_is_in_force(wire: Wire) -> None:
    line = b'{"jsonrpc":"2.0","params":{"name":"a","arguments":{"t":"%s"}},"id":77,"method":"tools/call"}\n' % (
        b"x" * (20 * 1024 * 1024)
    )
    out, _ = finish(wire.start("silent", options=("--deny", "mcp/x/evil")), line)
    assert wire.logged() == b""
    answer = json.loads(out)
    assert (answer["id"], answer["error"]["code"]) == (77, 10002)


def test_a_denied_call_never_reaches_the_server_and_the_agent_goes_on(wire: Wire) -> None:
    process = wire.start("answer", options=("--deny", "mcp/x/evil"))
    assert process.stdin is not None
    process.stdin.write(call(1, "evil"))
    refused = json.loads(read_line(process))
    assert refused["result"]["isError"] is True
    assert refused["result"]["_meta"]["io.wiretrap/refusal"]["code"] == 10001
    process.stdin.write(call(2))
    assert json.loads(read_line(process))["id"] == 2
    finish(process)
    assert wire.logged() == call(2)
    outcomes = [span.attributes[v.OUTCOME] for span in wire.spans("request")]
    assert sorted(map(str, outcomes)) == ["denied", "ok"]


def test_no_spelling_of_a_denied_call_reaches_a_real_server(wire: Wire) -> None:
    lines = [text.encode() for text, _ in DENIED_ONES.values()]
    lines += [line for line, _ in (*UNREADABLE.values(), *NESTED.values())]
    finish(wire.start("silent", options=("--deny", "mcp/x/evil")), b"".join(line + b"\n" for line in lines) + call(1))
    assert wire.logged() == call(1)
    denied = [span for span in wire.spans("decision") if span.attributes[v.DECISION] == "deny"]
    assert len(denied) >= len(lines)
