"""Each quick way of the wire gives what the careful one gives: reading a message, deciding on it, digesting it."""

import hashlib
import json
import random
from json import JSONDecoder

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.frames import Message, read_carefully, read_quickly
from proxy.members import LOOSE, STRICT
from proxy.sha import sha256_hex
from proxy.spans import JSON
from tests.proxy.fuzz import CLIENT, SERVER, mutated
from tests.proxy.test_bytes import json_values
from tests.proxy.test_fail_open import lines
from tests.proxy.wires import call, policy_of

ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a \\"result\\": b"}],"isError":false}}'
words = st.sampled_from(["result", "arguments", "params", '"result"', '"arguments":', "\\", "method", "é", "a:b,{}"])
members = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]),
    words | st.integers() | st.dictionaries(st.sampled_from(["name", "arguments", "_meta"]), words | json_values),
)


def told(message: Message) -> tuple[object, ...]:
    """All that a message says."""
    texts = [message.field_text(key) for key in message.fields], [message.given_text(key) for key in message.given]
    places = [(one.key, one.start, one.end, repr(one.value)) for one in message.members.values()]
    inner = [(one.key, one.start, one.end, repr(one.value)) for one in message.params.values()]
    read = repr(message.fields), repr(message.given), message.method, message.id_text, message.id_key
    return (message.source, message.is_answer, read, texts, places, inner)


def compare(text: str, decoder: JSONDecoder) -> bool:
    """Whether the quick way takes a text; it fails where the careful one has it otherwise."""
    quick = read_quickly(text, decoder)
    if quick is None:
        return False
    (careful,) = read_carefully(text, decoder).messages
    assert told(quick) == told(careful)
    return True


@settings(max_examples=120)
@given(lines() | st.builds(json.dumps, members, ensure_ascii=st.booleans(), indent=st.none()).map(str.encode))
@example(b'{"id":-0,"method":"tools/call"}')
@example(b'{"id":1,"result":1,"result":2}')
@example(b'{"id":1,"r\\u0065sult":1,"x":"result"}')
@example(b'{"id":"a\\u0062","result":{}}')
@example(b'{"params":{"arguments":1},"arguments":2,"id":1}')
def test_the_quick_way_reads_what_the_careful_one_does(raw: bytes) -> None:
    for decoder in (STRICT, LOOSE):
        compare(raw.decode("utf-8", "surrogateescape"), decoder)


def test_so_it_does_with_mutated_messages_of_the_protocol_and_takes_many_of_them() -> None:
    dice, taken = random.Random(1), 0
    for _ in range(3000):
        raw = mutated(dice.choice(CLIENT + SERVER).replace("%d", str(dice.randrange(4))).encode(), dice)
        taken += compare(raw.decode("utf-8", "surrogateescape"), dice.choice((STRICT, LOOSE)))
    assert taken > 300


@pytest.mark.parametrize("text", [call(), call(id_text='"a"'), ANSWER, json.dumps(json.loads(call()))])
def test_what_is_sent_most_is_read_the_quick_way(text: str) -> None:
    assert compare(text, STRICT)
    assert compare(f"{text}\n", LOOSE)


@given(st.lists(st.tuples(st.sampled_from(["a", "evil", "lot"]), st.sampled_from([None, 1, 2, [], "x"])), max_size=30))
def test_a_remembered_decision_is_the_one_that_a_new_policy_makes(calls: list[tuple[str, JSON]]) -> None:
    rules: list[JSON] = [
        {"deny": "mcp/x/e*"},
        {"deny": "mcp/x/l*", "arguments": {"properties": {"n": {"const": 2}}}},
        {"allow": "mcp/x/*", "trust": ["internal"]},
    ]
    kept = policy_of(default="deny", rules=rules)
    for place, (name, number) in enumerate(calls):
        trust = ("internal", "untrusted")[place % 2]
        arguments: JSON = {"n": number}
        fresh = policy_of(default="deny", rules=rules).judge(f"mcp/x/{name}", trust, arguments)
        assert kept.judge(f"mcp/x/{name}", trust, arguments) == fresh


@given(st.binary(max_size=300) | st.integers(32700, 33000).map(bytes))
def test_a_digest_is_sha_256_whichever_library_makes_it(data: bytes) -> None:
    assert sha256_hex(data) == hashlib.sha256(data).hexdigest()
