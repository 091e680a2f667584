import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.frames import read_loose, read_strict
from proxy.keys import fold, fold_method
from proxy.members import FrameError
from tests.proxy.test_bytes import json_values
from tests.proxy.test_fail_open import lines


@settings(max_examples=200)
@given(lines() | st.binary(max_size=60))
def test_a_read_gives_messages_or_a_frame_error(raw: bytes) -> None:
    for read in (read_strict, read_loose):
        try:
            line = read(raw)
        except FrameError:
            continue
        assert line.messages
        for message in line.messages:
            assert message.source.startswith("{")
            assert message.source.endswith("}")
            assert message.id_key is None or message.id_text is not None
            assert message.method is None or isinstance(message.method, str)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_members_have_the_values_and_the_text_that_a_parser_gives(
    value: dict[str, object], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    message = read_loose(text.encode("utf-8", "surrogatepass")).messages[0]
    assert {key: member.value for key, member in message.members.items()} == value
    for key, member in message.members.items():
        assert json.loads(message.text_of(member)) == value[key]
    params = value.get("params")
    if isinstance(params, dict):
        assert {key: member.value for key, member in message.params.items()} == params


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not whole"),
        (b'{"a"}', "colon"),
        (b'{"a":1 "b":2}', "comma"),
        (b"{1:2}", "key is missing"),
        (b'{"a":1,}', "key is missing"),
        (b'{"a":nul}', "not JSON"),
        (b'{"a":01}', "comma"),
        (b'{"a":.5}', "not JSON"),
        (b'{"a":+1}', "not JSON"),
        (b'{"a":1}x', "follows"),
        (b'{"a":1,"a":2}', "'a' is repeated"),
        (b'{"a":{"b":[{"c":1,"c":1}]}}', "'c' is repeated"),
        (b'{"params":{"a":1,"a":2}}', "'a' is repeated"),
        (b'{"params":{"":{"a":1,"a":2}}}', "'a' is repeated"),
        (b'{"x":"\\ud800"}', "surrogate"),
        (b'{"x":"\\uD83D \\uDE00"}', "surrogate"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a":"\xc0\xaf"}', "UTF-8 at byte 6"),
        (b'{"a":"\xed\xa0\x80"}', "UTF-8"),
        (b"[]", "empty array"),
        (b"[{},]", "no object"),
        (b"[{} {}]", "comma"),
        (b"1", "not a JSON object"),
        (b'{"a":' + b"1" * 5000 + b"}", "not JSON"),
        (b'{"a":' + b"[" * 3000, "deep"),
    ],
)
def test_a_strict_read_says_what_is_wrong(line: bytes, why: str) -> None:
    with pytest.raises(FrameError, match=why):
        read_strict(line)


def test_a_long_key_is_not_repeated_whole_in_the_sentence() -> None:
    key = "k" * 100_000
    with pytest.raises(FrameError) as caught:
        read_strict(f'{{"{key}":1,"{key}":2}}'.encode())
    assert len(str(caught.value)) < 200


def test_many_keys_with_one_repeat_are_read_in_good_time() -> None:
    text = "{" + ",".join(f'"k{number}":1' for number in range(200_000)) + ',"k199999":1}'
    with pytest.raises(FrameError, match="k199999"):
        read_strict(f'{{"a":{text}}}'.encode())


@pytest.mark.parametrize("key", ["ID", "Id", "id\0", "iD\0x", "İd", "ıd"])
def test_a_key_folds_to_what_a_careless_reader_takes_it_for(key: str) -> None:
    assert fold(key) == "id"


@pytest.mark.parametrize("method", ["tools/call", "Tools/Call", " tools/call\t", "tools/call\0", "tools/call \0x"])
def test_a_method_folds_likewise(method: str) -> None:
    assert fold_method(method) == "tools/call"
