"""Secrets on the wire: the proxy passes them on as they are, and its record has none of them."""

import hashlib
import json
import os
import subprocess
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from proxy import vocabulary as v
from proxy.frames import CAP
from proxy.record import Identity, Recorder, payload
from proxy.redact import Redactor
from proxy.relay import Relay
from proxy.spanfile import SpanFile
from proxy.spanread import read_spans
from proxy.spans import INTERNAL, Span
from tests.proxy.stdiowire import DEADLINE, Wire, finish

ENV_SECRET = 'env/"quoted"\\secret é😀'
CONTEXT_SECRET = "context-secret-0123456789"
HEX_SECRET = "0123456789abcdef0123456789abcdef"
SECRETS = (ENV_SECRET, CONTEXT_SECRET, HEX_SECRET)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path)
    yield wire
    wire.end()


def forms(secret: str) -> list[str]:
    found = [secret, quote(secret), quote(secret, safe="").lower()]
    for ascii_only in (True, False):
        text = secret
        for _ in range(3):
            text = json.dumps(text, ensure_ascii=ascii_only)[1:-1].replace("/", "\\/")
            found.append(text)
    for shift in range(3):
        raw = b"x" * shift + secret.encode() + b"y" * 3
        last = 8 * (shift + len(secret.encode())) // 6
        for encode in (b64encode, urlsafe_b64encode):
            found.append(encode(raw).decode()[-(-8 * shift // 6) : last])
    return found


def calls() -> list[bytes]:
    lines = []
    for secret in SECRETS:
        for number, form in enumerate(forms(secret)):
            message = {
                "jsonrpc": "2.0",
                "id": f"{number} {form}",
                "method": "tools/call",
                "params": {"name": f"tool {form}", "arguments": {"text": form, form: {"deep": json.dumps([form])}}},
            }
            lines.append(json.dumps(message, ensure_ascii=number % 2 == 0).encode() + b"\n")
        name = json.dumps(secret).encode()
        lines.append(b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":[%s]}\n' % (name, name, name))
        lines.append(b'{"jsonrpc":"2.0","method":"resources/read","id":1,"params":{"uri":%s}}\n' % name)
        lines.append(b'{"jsonrpc":"2.0","method":"notifications/%s"}\n' % quote(secret).encode())
        lines.append(b"no frame at all: %s\n" % secret.encode())
        lines.append(b'{"jsonrpc":"2.0","id":7,"result":%s}\n' % name)
    traceparent = f"00-{HEX_SECRET}-{'ab' * 8}-01".encode()
    lines.append(b'{"jsonrpc":"2.0","id":8,"method":"x","params":{"_meta":{"traceparent":"%s"}}}\n' % traceparent)
    return lines


def written(wire: Wire) -> str:
    """All span files, and every text in them decoded as often as it can be."""
    files = [file.read_text("utf-8", "surrogateescape") for file in wire.spans_folder.iterdir()]
    texts = [str(value) for span in wire.spans() for value in (span.name, span.message, *span.attributes.values())]
    ids = [identity for span in wire.spans() for identity in (span.trace_id, span.parent_id)]
    return "\n".join(files + texts + ids)


@pytest.mark.parametrize("options", [(), ("--deny", "mcp/x/*tool*9*")], ids=["no policy", "a policy"])
def test_no_form_of_a_secret_is_in_the_record_and_the_wire_is_as_without_it(
    wire: Wire, tmp_path: Path, options: tuple[str, ...]
) -> None:
    lines = calls()
    (tmp_path / "context.json").write_text(
        json.dumps({"secrets": [CONTEXT_SECRET, "OTHER_VALUE"], "redact_key": "ab" * 32, "run_id": "r1"})
    )
    context = ("--context", str(tmp_path / "context.json"))
    process = wire.start("echo", options=(*options, *context), SERVICE_TOKEN=ENV_SECRET, OTHER_VALUE=HEX_SECRET)
    out, err = finish(process, b"".join(lines))
    if not options:
        assert wire.logged() == b"".join(lines)
        direct = subprocess.run(
            [sys.executable, "-S", wire_server(), os.devnull, "echo"],
            input=b"".join(lines),
            capture_output=True,
            timeout=DEADLINE,
            check=True,
        )
        assert out == direct.stdout
    record = written(wire)
    for secret in SECRETS:
        for form in forms(secret):
            assert form not in record
            assert form.encode() not in err
    redactor = Redactor(SECRETS, b"\xab" * 32)
    assert redactor.text(CONTEXT_SECRET)[0] in record, "the key is the context's"
    for span in wire.spans():
        check_payloads(span)


def wire_server() -> str:
    return str(Path(__file__).with_name("raw_server.py"))


def check_payloads(span: Span) -> None:
    found = 0
    for key, label in ((v.TOOL_ARGUMENTS, "arguments"), (v.TOOL_RESULT, "result"), (v.REQUEST, "request")):
        text = span.attributes.get(key)
        if text is None:
            continue
        raw = str(text).encode("utf-8", "surrogateescape")
        assert span.attributes[v.payload_bytes(label)] == len(raw)
        assert span.attributes[v.payload_sha256(label)] == hashlib.sha256(raw).hexdigest()
        found += raw.count(b"[redacted:")
        if key != v.REQUEST:
            json.loads(raw)
    assert int(str(span.attributes.get(v.REDACTIONS, 0))) >= found


def test_a_short_value_is_named_in_a_warning_and_not_shown(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "context.json").write_text(json.dumps({"secrets": ["tiny17"]}))
    process = wire.start("silent", options=("--quiet", "--context", str(tmp_path / "context.json")), SHORT_KEY="abc42")
    _, err = finish(process)
    warning = err.decode()
    assert warning.startswith("wiretrap: not redacted, since shorter than 8 characters: ")
    assert "SHORT_KEY" in warning
    assert "secret 1" in warning
    assert "abc42" not in warning
    assert "tiny17" not in warning


def test_what_the_proxy_says_on_stderr_has_no_secret(wire: Wire) -> None:
    process = wire.start(command=(f"/no/such/{CONTEXT_SECRET}",), MY_SECRET=CONTEXT_SECRET)
    _, err = finish(process)
    assert process.returncode == 127
    assert b"cannot start '/no/such/[redacted:" in err
    assert CONTEXT_SECRET.encode() not in err


@pytest.mark.parametrize("key", ["ab", "zz" * 32, "!" * 44])
def test_a_key_that_is_none_stops_the_start(wire: Wire, tmp_path: Path, key: str) -> None:
    (tmp_path / "context.json").write_text(json.dumps({"redact_key": key}))
    process = wire.start("silent", options=("--context", str(tmp_path / "context.json")))
    _, err = finish(process)
    assert process.returncode == 2
    assert b"redact_key must be 32 bytes in hex or base64" in err


def test_keys_in_hex_and_in_base64_give_the_same_marks(wire: Wire, tmp_path: Path) -> None:
    raw = bytes(range(32))
    for key in (raw.hex(), b64encode(raw).decode()):
        (tmp_path / "context.json").write_text(json.dumps({"redact_key": key, "secrets": [CONTEXT_SECRET]}))
        finish(
            wire.start("silent", options=("--context", str(tmp_path / "context.json"))),
            b'{"jsonrpc":"2.0","method":"%s"}\n' % CONTEXT_SECRET.encode(),
        )
    one, other = wire.spans("notification")
    assert one.name == other.name == Redactor([CONTEXT_SECRET], raw).text(CONTEXT_SECRET)[0]


def relay(folder: Path, redactor: Redactor | None) -> Relay:
    identity = Identity("x", "trusted", "in_process", "c" * 16)
    return Relay(identity, None, "1", SpanFile.create(folder, "x"), redactor)


def test_the_cut_end_of_a_payload_holds_no_beginning_of_a_secret(tmp_path: Path) -> None:
    one = relay(tmp_path, Redactor([CONTEXT_SECRET], b"k" * 32))
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"t":"'
    line = head + b"x" * (CAP - len(head) - 12) + CONTEXT_SECRET.encode() + b'"}}}\n'
    assert one.from_client(line).to_server == line
    one.close("client_ended")
    notes: list[str] = []
    (decision,) = [s for s in read_spans([str(tmp_path)], notes.append) if s.attributes[v.SPAN_KIND] == "decision"]
    text = str(decision.attributes[v.REQUEST])
    assert decision.attributes[v.payload_truncated("request")] is True
    assert decision.attributes[v.payload_bytes("request")] == len(text)
    assert CONTEXT_SECRET[:4] not in text
    assert text.startswith(head.decode())


def test_words_of_ours_stay_readable_when_a_secret_is_one_of_them(tmp_path: Path) -> None:
    one = relay(tmp_path, Redactor(["client_to_server", "notification"], b"k" * 32))
    one.from_client(b'{"jsonrpc":"2.0","method":"a","params":["notification"]}\n')
    one.close("client_ended")
    notes: list[str] = []
    spans = [span for span in read_spans([str(tmp_path)], notes.append) if span.name == "a"]
    assert [span.attributes[v.SPAN_KIND] for span in spans] == ["notification"]
    assert "notification" not in str(spans[0].attributes[v.PARAMS])


def test_a_secret_that_is_the_servers_id_leaves_the_names_of_its_tools_readable(tmp_path: Path) -> None:
    identity = Identity("ticketing", "trusted", "in_process", "c" * 16)
    redactor = Redactor(["ticketing", "get_ticketing"], b"k" * 32)
    one = Relay(identity, None, "1", SpanFile.create(tmp_path, "x"), redactor)
    for name in (b"get_ticketing", b"plain"):
        one.from_client(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}\n' % name)
    one.close("client_ended")
    notes: list[str] = []
    names = {str(span.attributes.get(v.TOOL_CANONICAL)) for span in read_spans([str(tmp_path)], notes.append)}
    assert names == {f"mcp/ticketing/{redactor.text('get_ticketing')[0]}", "mcp/ticketing/plain", "None"}


def test_a_line_without_a_secret_is_the_same_line() -> None:
    attributes = payload(v.PARAMS, "params", '{"a":"b\\n"}')
    lines = []
    for redactor in (None, Redactor(["some-secret"], b"k" * 32)):
        recorder = Recorder(Identity("x", "trusted", "stdio", "c"), "1", lambda digits: "a" * digits)
        recorder.redactor = redactor
        place = recorder.place(None)
        lines.append(recorder.line(place, "n", INTERNAL, (1, 2), attributes, "failed"))
    assert lines[0] == lines[1]
