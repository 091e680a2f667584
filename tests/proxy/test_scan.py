import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.scan import EnvelopeScanner, decoded
from tests.proxy.test_bytes import json_values


def scanned(*chunks: bytes) -> EnvelopeScanner:
    scanner = EnvelopeScanner()
    for chunk in chunks:
        scanner.feed(chunk)
    return scanner


targets = st.fixed_dictionaries({}, optional={"name": st.text(), "uri": st.text(), "x": json_values})
members = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers() | st.text() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "method": st.text(),
        "params": json_values | targets,
        "result": json_values | st.fixed_dictionaries({"isError": st.booleans()}),
        "error": st.fixed_dictionaries({"code": st.integers()}),
        "other": json_values,
    },
)
PATHS = {
    "id": ("id",),
    "method": ("method",),
    "name": ("params", "name"),
    "uri": ("params", "uri"),
    "is_error": ("result", "isError"),
    "code": ("error", "code"),
}


@settings(max_examples=200)
@given(members, st.lists(st.integers(0, 300), max_size=6), st.booleans(), st.sampled_from([None, 1]))
def test_it_finds_what_a_parser_finds_however_the_text_is_cut(
    message: dict[str, object], cuts: list[int], ascii_only: bool, indent: int | None
) -> None:
    raw = json.dumps(message, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    places = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    scanner = scanned(*(raw[start:end] for start, end in pairwise(places)))
    (envelope,) = scanner.envelopes
    for name, path in PATHS.items():
        value: object = message
        for key in path:
            value = value.get(key, []) if isinstance(value, dict) else []
        if isinstance(value, dict | list):
            assert name not in envelope.found
        else:
            assert json.loads(envelope.found[name].decode("utf-8", "surrogatepass")) == value
    assert not scanner.array


pieces = st.binary(max_size=30) | st.sampled_from([b'{"id":', b'"', b"\\", b"}", b"[", b"]", b",", b":"])


@given(st.lists(pieces, max_size=12))
def test_it_never_fails_on_any_bytes(chunks: list[bytes]) -> None:
    once, all_at_once = scanned(*chunks), scanned(b"".join(chunks))
    assert once.envelopes == all_at_once.envelopes
    for envelope in once.envelopes:
        assert envelope.id_text is None or isinstance(json.loads(envelope.id_text), str | int | float)
        assert envelope.target is None or isinstance(envelope.target, str)


@pytest.mark.parametrize(
    ("text", "id_text"),
    [
        ('{"id":1}', "1"),
        ('{"id": 1.50 }', "1.50"),
        ('{"id":"\\u0031"}', '"\\u0031"'),
        ('{"\\u0069d":-0}', "-0"),
        ('{"id":1,"id":1}', None),
        ('{"id":1,"id":{}}', None),
        ('{"id":{},"id":1}', None),
        ('{"id":1,"ID":2}', None),
        ('{"ID":2,"id":1}', None),
        ('{"ID":1}', None),
        ('{"id":null}', None),
        ('{"id":true}', None),
        ('{"id":NaN}', None),
        ('{"id":01}', None),
        ('{"id":"\\ud800"}', None),
        ('{"id":"a\x01"}', None),
        ('{"x":{"id":1}}', None),
        ('{"x":[{"id":1}]}', None),
        ('{"id":' + "1" * 5000 + "}", "1" * 5000),
        ('{"id":"' + "1" * 70_000 + '"}', None),
    ],
)
def test_an_id_is_usable_when_there_is_one_that_an_answer_can_carry(text: str, id_text: str | None) -> None:
    assert scanned(text.encode()).envelopes[0].id_text == id_text


def test_messages_of_an_array_and_behind_each_other_are_told_apart() -> None:
    array = scanned(b'[{"id":1,"method":"a"},[{"id":2}],{"id":3}]')
    assert array.array
    assert [envelope.id_text for envelope in array.envelopes] == ["1", "2", "3"]
    row = scanned(b'{"id":1} {"id":2}x[{"id":3}]')
    assert not row.array
    assert [envelope.id_text for envelope in row.envelopes] == ["1", "2", "3"]


def test_folded_keys_count_and_the_last_of_repeated_values_is_found() -> None:
    text = b'{"Method":"a","method\\u0000":"b","Params":{"name":"x","NAME":"y","name":[]},"params":{"uri":"u"}}'
    (envelope,) = scanned(text).envelopes
    assert envelope.text("method") == "b"
    assert envelope.target == "u"
    assert {"method", "name"} <= envelope.repeated


def test_what_is_no_json_decodes_to_nothing() -> None:
    assert decoded(b"") is None
    assert decoded(b"{") is None
    assert decoded(b"[" * 100_000) is None
