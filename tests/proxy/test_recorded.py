"""What is recorded of a fixed conversation is, to the letter, what was recorded of it before."""

import json
from itertools import count
from pathlib import Path

from proxy.policy import Policy, Rule
from proxy.record import Identity, Stamp
from proxy.redact import Redactor
from proxy.session import Session, Side
from proxy.spanread import spans_of
from tests.proxy.wires import EVIL, call

RECORDED = Path(__file__).with_name("recorded.jsonl")
"""A line for each span, made by the recorder before it was made fast: a change of it is a change of the format."""
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
MODERN = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
LINES: list[tuple[Side, str]] = [
    ("client", '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'),
    ("server", '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'),
    ("client", '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    ("client", call("ok", arguments='{"a": 1E2, "s": "s3cretvalue1 é \\n"}')),
    (
        "server",
        '{"jsonrpc":"2.0","id":1.0,"result":{"content":[{"type":"text","text":"é \\u00e9 \\n"}],"isError":true}}',
    ),
    ("client", call(id_text='"q"')),
    ("client", call("a/b:c%", id_text="-0")),
    ("client", call("ok", id_text="null")),
    ("client", call("ok", id_text="7", arguments="[1]")),
    ("client", call("ok", id_text="7")),
    ("client", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'),
    ("server", '{"id":7,"result":{"a":{"result":1}},"jsonrpc":"2.0"}'),
    ("client", f'{{"id":8,"method":"tools/call","params":{{"name":"ok","_meta":{{"traceparent":"{PARENT}"}}}}}}'),
    ("server", '{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"s3cretvalue1"}}'),
    ("client", '{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"file:///x"}}'),
    ("server", '{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"no"}}'),
    ("client", '{"jsonrpc":"2.0","id":10,"method":"prompts/get","params":{"name":"p"}}'),
    ("server", '{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[]}}'),
    ("client", '{"jsonrpc":"2.0","id":"s","result":{"role":"assistant"}}'),
    ("server", '{"jsonrpc":"2.0","id":99,"result":{}}'),
    ("server", "no JSON"),
    ("client", f'{{"id":11,"method":"tools/call","params":{{"name":"ok","arguments":{{}},{MODERN}}}}}'),
    (
        "server",
        '{"id":11,"result":{"resultType":"input_required","requestState":"r",'
        '"inputRequests":{"k":{"method":"elicitation/create","params":{}}}}}',
    ),
    ("client", f'{{"id":12,"method":"tools/call","params":{{"name":"ok","requestState":"r",{MODERN}}}}}'),
    ("server", '{"id":12,"result":{"content":[]}}'),
    ("client", '{"id":13,"method":"tools/call","params":{"name":"ok","name":"evil"}}'),
    ("client", '{"jsonrpc":"2.0","id":14,"method":"tools/list"}'),
]
POLICIES = [None, EVIL, Policy(mode="observe", rules=(Rule("deny", "mcp/x/evil", reason="never"),))]


def recorded(policy: Policy | None, redactor: Redactor | None) -> list[str]:
    """The spans of the conversation, each as a line."""
    ids, clock = count(1), count(1000, 10)

    def now() -> Stamp:
        mono = next(clock)
        return Stamp(mono, 1_700_000_000_000_000_000 + mono)

    identity = Identity("x", "third_party", "stdio", "c1", run_id="r", trial=1)
    session = Session(identity, policy, "0.1.0", lambda digits: f"{next(ids):0{digits}x}", now())
    session.recorder.redactor = redactor
    records: list[str | bytes | bytearray] = [*session.opened().records]
    for side, line in LINES:
        records += session.line(side, line.encode() + b"\n", now()).records
        records += session.settle()
    records += session.closed("client_ended", now(), len(records), 0).records
    return [_told(record) for record in records]


def _told(record: str | bytes | bytearray) -> str:
    (span,) = spans_of(json.loads(record), "recorded")
    place = span.trace_id.lstrip("0"), span.span_id.lstrip("0"), span.parent_id.lstrip("0"), span.links
    times = span.start_ns, span.end_ns
    return json.dumps([span.name, span.kind, *place, *times, span.status, span.message, dict(span.attributes)])


def test_a_conversation_is_recorded_as_ever() -> None:
    redactor = Redactor(["s3cretvalue1"], b"k" * 32)
    spans = [line for policy in POLICIES for line in recorded(policy, redactor if policy is EVIL else None)]
    assert spans == RECORDED.read_text(encoding="utf-8").splitlines()
