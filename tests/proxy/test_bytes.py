import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.policy import Policy
from proxy.spans import Span
from tests.proxy.wires import ALLOWING, OBSERVING, Wire, call, wire

POLICIES = {"none": None, "allowing": ALLOWING, "observing": OBSERVING}
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())

MESSAGES = [
    '{"params":{"x":1,"name":"ok","vendor":{"b":1,"a":2}},"method":"tools/call","id":1,"jsonrpc":"2.0","unknown":[]}',
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ok","arguments":{"a":1E2,"b":-0.0,"c":1e400,"d":-0}}}',
    '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ok","arguments":{"a":9007199254740993}}}',
    '{"jsonrpc":"2.0","id":4,"method":"x/y","params":{"n":123456789012345678901234567890,"m":1.10}}',
    '{"jsonrpc":"2.0","id":0,"method":"ping"}',
    '{"jsonrpc":"2.0","id":"","method":"ping"}',
    '{"jsonrpc":"2.0","id":"1","method":"ping"}',
    '{"jsonrpc":"2.0","id":1.0,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1e99999999999999999999,"method":"ping"}',
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    '{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call","params":{"name":"ok"}}',
    '{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"ok"}}',
    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ok"}}',
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"a\u2028b\u2029c\u0085d"}}',
    '\t {"jsonrpc" :"2.0"\r,\r"method": "notifications/x" ,"params":\r{ } } \r',
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ok","arguments":\r{"method":"GET"}\r}}',
    '{"jsonrpc":"2.0","method":"notifications/x"}\r',
    "",
    " \t\r",
    '{"jsonrpc":"2.0","id":5,"result":{"z":1,"a":"\\ud83d\\ude00 \\/ \\u00e9","n":1.0}}',
    '{"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"no","data":{"x":[1e0]}},"extra":1}',
    '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no id"}}',
    '{"jsonrpc":"2.0","id":8,"error":{"code":{"a":1},"message":[]}}',
    '{"jsonrpc":"2.0","id":9,"result":null}',
    '{"jsonrpc":"2.0","id":10,"method":"x","params":[1,{"a":2}]}',
    '{"jsonrpc":"2.0","id":11,"method":"x","params":null}',
    '{"jsonrpc":"2.0","id":12}',
    "{}",
]
ODD = [
    b"server ready, listening\n",
    b"\xff\xfe\x00 not utf-8 \x80\n",
    b'{"jsonrpc":"2.0","method":"notifications/x","params":{"t":"\xc3\x28"}}\n',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}\n',
    b'{"a":1}{"b":2}\n',
    b'{"a":NaN,"a":1,"b":"\x01"}\n',
    b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"a"}]\n',
    b"[" * 5000 + b"\n",
    b'{"id":' + b"9" * 5000 + b',"result":1}\n',
    b"\x00\x1e\x0b\n",
    b"[]\n",
    b"[1,2]\n",
    b'"text"\n',
]


@policies
@pytest.mark.parametrize("text", MESSAGES)
def test_a_message_crosses_in_either_direction_as_it_was_written(
    tmp_path: Path, policy: Policy | None, text: str
) -> None:
    connection = Wire(tmp_path, policy)
    line = text.encode() + b"\n"
    connection.client(line)
    connection.server(line)
    assert connection.to_server == line
    assert connection.to_client == line
    connection.end()
    assert connection.relay.failure == ""
    assert bytes(connection.to_client + connection.to_server) == line + line


@policies
@pytest.mark.parametrize("line", ODD)
def test_what_is_no_message_crosses_from_the_server_and_is_recorded(
    tmp_path: Path, policy: Policy | None, line: bytes
) -> None:
    connection = Wire(tmp_path, policy)
    connection.server(line)
    assert connection.to_client == line
    assert connection.relay.failure == ""
    assert len(connection.spans()) >= 2


@pytest.mark.parametrize("policy", [None, OBSERVING], ids=["none", "observing"])
@pytest.mark.parametrize("line", ODD)
def test_what_is_no_message_crosses_from_the_client_where_no_policy_is_in_force(
    tmp_path: Path, policy: Policy | None, line: bytes
) -> None:
    connection = Wire(tmp_path, policy)
    connection.client(line)
    assert connection.to_server == line
    assert connection.to_client == b""
    assert connection.relay.failure == ""
    assert len(connection.spans()) >= 2


@policies
def test_an_unterminated_last_line_crosses_without_a_line_feed(tmp_path: Path, policy: Policy | None) -> None:
    connection = Wire(tmp_path, policy)
    connection.client(b'{"jsonrpc":"2.0","method":"a"}')
    connection.server(b"half a ban")
    assert (connection.to_server, connection.to_client) == (b"", b"")
    connection.end()
    assert connection.to_server == b'{"jsonrpc":"2.0","method":"a"}'
    assert connection.to_client == b"half a ban"


def test_invalid_bytes_stand_in_the_record_as_they_crossed(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.server(b"\xff banner \x80\n")
    text = connection.only("malformed").attributes[v.REQUEST]
    assert isinstance(text, str)
    assert text.encode("utf-8", "surrogateescape") == b"\xff banner \x80\n"


@policies
def test_lines_of_twenty_megabytes_cross_from_the_server_whole(tmp_path: Path, policy: Policy | None) -> None:
    connection = Wire(tmp_path, policy)
    connection.client(call("ok"))
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + b"x" * 20_000_000 + b'"}]}}\n'
    for at in range(0, len(line), 3_000_001):
        connection.server(line[at : at + 3_000_001])
    assert connection.to_client == line
    answer = connection.only("request")
    assert answer.attributes[v.OUTCOME] == "ok"
    assert answer.attributes[v.payload_truncated("result")] is True
    assert answer.attributes[v.payload_bytes("result")] == 64 * 1024


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
ids = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
methods = st.sampled_from(["ping", "tools/list", "tools/call", "notifications/x", "initialize"]) | st.text(max_size=5)
members = {"id": ids, "method": methods, "params": json_values, "result": json_values, "error": json_values}


@st.composite
def message_lines(draw: st.DrawFn) -> bytes:
    message = draw(st.fixed_dictionaries({}, optional=members)) | draw(
        st.dictionaries(st.text(max_size=5), json_values, max_size=2)
    )
    if draw(st.booleans()):
        message["params"] = {"name": draw(st.text(max_size=4)), "arguments": draw(json_values)}
    text = json.dumps(message, ensure_ascii=draw(st.booleans()), indent=None)
    return text.encode("utf-8", "replace") + draw(st.sampled_from([b"\n", b"\r\n", b" \n"]))


any_lines = message_lines() | st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"") + b"\n")
streams = st.lists(any_lines, max_size=6)


@settings(max_examples=80, deadline=None)
@given(streams, streams, st.binary(max_size=6), st.sampled_from([None, OBSERVING]))
def test_any_streams_cross_whole_and_never_stop_the_relay(
    up: list[bytes], down: list[bytes], tail: bytes, policy: Policy | None
) -> None:
    with wire(policy) as connection:
        for index in range(max(len(up), len(down))):
            connection.client(*up[index : index + 1])
            connection.server(*down[index : index + 1])
        connection.client(tail)
        connection.server(tail)
        connection.end()
        assert connection.to_server == b"".join(up) + tail
        assert connection.to_client == b"".join(down) + tail
        assert connection.relay.failure == ""


def plain(span: Span) -> tuple[object, ...]:
    """A span without what differs from one run to the next."""
    times = {v.MONO, v.RESULT_MONO}
    return span.name, span.kind, span.status, {k: x for k, x in span.attributes.items() if k not in times}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(any_lines, min_size=1, max_size=5),
    st.lists(st.integers(0, 400), max_size=8),
    st.sampled_from([*POLICIES.values()]),
)
def test_where_a_stream_is_cut_changes_nothing(lines: list[bytes], cuts: list[int], policy: Policy | None) -> None:
    stream = b"".join(lines)
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    with wire(policy) as whole, wire(policy) as cut:
        for connection, chunks in (
            (whole, [stream]),
            (cut, [stream[a:b] for a, b in itertools.pairwise(places)]),
        ):
            connection.client(*chunks)
            connection.server(*chunks)
            connection.end()
        assert whole.to_server == cut.to_server
        assert whole.to_client == cut.to_client
        assert [plain(span) for span in whole.spans()] == [plain(span) for span in cut.spans()]
