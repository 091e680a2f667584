"""Ids and headers of a bridge, as text: nothing else of a message changes, and the client's own come back."""

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.bridgeids import about, answered, numbered, reported
from proxy.connectwords import HeaderError, as_line, read_headers, servers_own_error
from proxy.frames import Message, read_strict
from proxy.heard import secrets_of
from proxy.mcpheaders import Mirrors, SchemaError, header_value, made, mirrored, mismatch
from proxy.spans import JSON
from tests.proxy.bridgewires import modern

ids = st.one_of(
    st.integers().map(str),
    st.text(alphabet=st.characters(codec="utf-8")).map(json.dumps),
    st.just("1.50"),
    st.just("1E2"),
)
plain = st.dictionaries(st.sampled_from(["a", "id", "progressToken", "x\n\t"]), ids.map(json.loads), max_size=3)


def one(text: str | bytes) -> Message:
    (message,) = read_strict(text if isinstance(text, bytes) else text.encode()).messages
    return message


@given(ids, ids, plain)
def test_a_request_has_another_id_and_token_on_its_way_and_all_else_as_it_was(
    id_text: str, token: str, arguments: dict[str, JSON]
) -> None:
    asked = modern(id_text=id_text, meta=f'"progressToken":{token},', name="ok", arguments=arguments)
    line, own = numbered(one(asked), 12)
    assert line.count(b"\n") == 1
    assert (own.id_text, own.token) == (id_text, token)
    was, now = json.loads(asked), json.loads(line)
    assert (now["id"], now["params"]["_meta"].pop("progressToken")) == (12, 12)
    del was["params"]["_meta"]["progressToken"]
    assert now == {**was, "id": 12}

    result = '{"result":{"id":12,"_meta":{"io.modelcontextprotocol/subscriptionId":12}},"id":12,"jsonrpc":"2.0"}'
    assert answered(one(result), own) == (
        f'{{"result":{{"id":12,"_meta":{{"io.modelcontextprotocol/subscriptionId":{id_text}}}}},'
        f'"id":{id_text},"jsonrpc":"2.0"}}'
    )
    note = '{"method":"notifications/progress","params":{"progressToken":12,"progress":12,"requestId":12}}'
    assert about(one(note)) == 12
    assert reported(one(note), own) == note.replace('"progressToken":12', f'"progressToken":{token}')


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_name_comes_through_a_header_as_it_is(name: str) -> None:
    message = one(modern(name=name))
    headers = made(message, Mirrors())
    assert all(32 <= byte < 127 for _, value in headers for byte in value)
    assert mismatch(headers, message, Mirrors()) is None


@given(st.text(alphabet=st.characters(codec="utf-8")), st.integers(-(10**20), 10**20), st.booleans())
def test_arguments_come_through_headers_as_they_are(text: str, number: int, flag: bool) -> None:
    properties: dict[str, JSON] = {
        "t": {"type": "string", "x-mcp-header": "T"},
        "o": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "f": {"type": "boolean", "x-mcp-header": "F"},
    }
    mirrors = Mirrors()
    tool: JSON = {"name": "ok", "inputSchema": {"type": "object", "properties": properties}}
    mirrors.learn(one(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}})))
    message = one(modern(name="ok", arguments={"t": text, "o": {"n": number}, "f": flag}))
    headers = made(message, mirrors)
    assert len(headers) == 6
    assert mismatch(headers, message, mirrors) is None
    for at in range(3, 6):
        assert mismatch(headers[:at] + headers[at + 1 :], message, mirrors) is not None
        wrong = (headers[at][0], header_value("something else"))
        assert mismatch([*headers[:at], wrong, *headers[at + 1 :]], message, mirrors) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "A", "type": "string"},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A b"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 1}}},
        {"properties": {k: {"type": "string", "x-mcp-header": n} for k, n in (("a", "A"), ("b", "a"))}},
    ],
)
def test_an_annotation_that_no_client_follows_makes_no_header(schema: JSON) -> None:
    with pytest.raises(SchemaError):
        mirrored(schema)


def test_headers_are_read_from_options_and_the_environment_and_their_values_are_secret() -> None:
    found = read_headers(["Authorization: Bearer sesame-1"], ["X-Key=KEY"], {"KEY": "sesame-2"})
    assert found == [(b"authorization", b"Bearer sesame-1"), (b"x-key", b"sesame-2")]
    assert set(secrets_of(found)) == {"Bearer sesame-1", "sesame-1", "sesame-2"}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("no colon in sesame", "'Name: value'"),
        ("a b: sesame", "no name of a header"),
        ("a: sesame\n1", "control character"),
        ("a: sesame\u2028", "no header carries"),
        ("host: sesame", "the bridge's own"),
        ("Mcp-Session-Id: sesame", "the bridge's own"),
    ],
)
def test_a_header_that_cannot_be_sent_is_named_and_its_value_is_not(option: str, said: str) -> None:
    with pytest.raises(HeaderError, match=said) as caught:
        read_headers([option], [], {})
    assert "sesame" not in str(caught.value)


def test_a_bearer_token_comes_from_a_variable_and_is_secret() -> None:
    found = read_headers([], [], {"TOKEN": "sesame-3"}, "TOKEN")
    assert found == [(b"authorization", b"Bearer sesame-3")]
    assert "sesame-3" in secrets_of(found)
    with pytest.raises(HeaderError, match="--bearer-env: the variable NOT_SET is not set"):
        read_headers([], [], {}, "NOT_SET")


def test_a_header_from_a_variable_that_is_not_set_is_an_error() -> None:
    for named in ("a=NOT_SET", "a", "a="):
        with pytest.raises(HeaderError):
            read_headers([], [named], {})


def test_an_http_error_that_holds_the_servers_own_error_is_the_servers() -> None:
    asked = one('{"jsonrpc":"2.0","id":"a","method":"x"}')
    error = '"error":{"code":-32001,"message":"no"}'
    assert servers_own_error(f'{{"id":"a",{error}}}'.encode(), asked) == f'{{"id":"a",{error}}}\n'.encode()
    own = f'{{"jsonrpc":"2.0","id":"a",{error}}}\n'.encode()
    for without in (f'{{"jsonrpc":"2.0","id":null,{error}}}', f"{{{error}}}"):
        assert servers_own_error(without.encode(), asked) == own
    for other in (
        f'{{"id":"b",{error}}}',
        "<html>",
        '{"result":{},"id":"a"}',
        f"[{{{error}}}]",
        '{"error":"x","method":"y"}',
        '{"error":"invalid_token"}',
        '{"error":"invalid_token","id":"a"}',
        '{"error":{"status":401},"id":null}',
    ):
        assert servers_own_error(other.encode(), asked) is None


def test_a_message_of_several_lines_becomes_one() -> None:
    assert as_line(b'\xef\xbb\xbf{\r\n"a":\n1}\n') == b'{  "a": 1}\n'


def test_the_secrets_inside_of_basic_credentials_and_cookies_are_secret_by_themselves() -> None:
    basic = b64encode(b"me:sesame:4").decode()
    found = read_headers([f"Authorization: Basic {basic}", 'Cookie: sid=sesame-5; theme=; b="sesame-6"'], [], {})
    assert {"sesame:4", "sesame-5", "sesame-6", basic} <= set(secrets_of(found))
    assert "" not in secrets_of(found)
    assert secrets_of(read_headers(["Authorization: Basic !"], [], {})) == ("Basic !", "!")


@pytest.mark.parametrize(("named", "bearer"), [(["X=sk-sesame-7"], None), ([], "sk-sesame-7")])
def test_a_secret_that_stands_where_a_variable_should_is_not_repeated(named: list[str], bearer: str | None) -> None:
    with pytest.raises(HeaderError) as caught:
        read_headers([], named, {}, bearer)
    assert "sesame" not in str(caught.value)
