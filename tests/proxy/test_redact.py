"""Secrets leave a text in every form they have, and nothing else does."""

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.redact import Redactor, redact_json
from proxy.secretvalues import named_secrets, secret_environment
from proxy.spans import JSON
from tests.proxy.secretforms import KEY, MARK, around, decoded, nested, odd, percent, secrets, usual


@settings(max_examples=60, deadline=None)
@given(st.data(), secrets)
def test_no_secret_is_left_in_nested_json_and_it_stays_json(data: st.DataObject, secret: str) -> None:
    text = data.draw(nested(secret))
    redacted, count = Redactor([secret], KEY).text(text)
    assert count >= 1
    for value in decoded(redacted):
        assert not isinstance(value, str) or secret.strip() not in value
    assert Redactor([secret], KEY).text(redacted) == (redacted, 0)


@settings(max_examples=100, deadline=None)
@given(st.data(), secrets)
def test_no_secret_is_left_in_percent_encoding_also_inside_json(data: st.DataObject, secret: str) -> None:
    draw = data.draw
    coded = percent(draw, secret)
    redactor = Redactor([secret], KEY)
    plain, count = redactor.text(f"https://h.example/p?q={coded}&r=1")
    assert count == 1
    assert MARK.sub("", plain) == "https://h.example/p?q=&r=1" or secret != secret.strip()
    inside, count = redactor.text(json.dumps({"url": f"https://h.example/?q={coded}"}))
    assert count == 1
    assert MARK.search(json.loads(inside)["url"])


@settings(max_examples=100, deadline=None)
@given(
    secrets,
    st.binary(max_size=7),
    st.binary(max_size=7),
    st.sampled_from([b64encode, urlsafe_b64encode]),
    st.booleans(),
    st.integers(0, 3),
)
def test_no_secret_is_left_in_base64_at_any_alignment(
    secret: str, before: bytes, after: bytes, encode: Callable[[bytes], bytes], padded: bool, levels: int
) -> None:
    raw = secret.strip().encode("utf-8", "surrogateescape")
    coded = encode(before + raw + after).decode()
    text = coded if padded else coded.rstrip("=")
    for _ in range(levels):
        text = json.dumps({"b": text}).replace("/", "\\/")
    redacted, count = Redactor([secret], KEY).text(text)
    assert count == 1
    for _ in range(levels):
        redacted = json.loads(redacted)["b"]
    left, right = MARK.split(redacted)
    # What is left and right of the mark are digits of the neighbours alone (fewer, where they go on like the secret).
    assert len(left) <= 8 * len(before) // 6
    assert len(right.rstrip("=")) <= len(coded.rstrip("=")) - -(-8 * (len(before) + len(raw)) // 6)
    assert raw[:4] not in b64decode(left.replace("-", "+").replace("_", "/") + "A" * (-len(left) % 4))


def test_base64_broken_into_lines_is_found() -> None:
    secret = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz"
    coded = b64encode(b"x" * 40 + secret.encode() + b"y" * 40).decode()
    text = "\r\n".join(coded[place : place + 64] for place in range(0, len(coded), 64))
    for written in (text, json.dumps({"t": text})):
        redacted, count = Redactor([secret], KEY).text(written)
        assert count == 1
        assert b64encode(secret.encode()).decode()[8:30] not in redacted.replace("\r\n", "").replace("\\r\\n", "")


def test_utf_16_does_not_hide_a_secret() -> None:
    raw = '{"t":"hunter2hunter2"}'.encode("utf-16-le").decode("utf-8", "surrogateescape")
    assert Redactor(["hunter2hunter2"], KEY).text(raw)[1] == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(secrets, min_size=1, max_size=4), st.text(odd | usual, max_size=80))
def test_a_text_without_a_secret_stays_itself(values: list[str], text: str) -> None:
    # Only what is spelt with characters of a secret could say it.
    kept = "".join(char for char in text if char not in "".join(values) and not char.isalnum())
    assert Redactor(values, KEY).text(kept) == (kept, 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(secrets, min_size=1, max_size=4), st.data())
def test_no_secret_is_left_among_others_and_twice_is_as_once(values: list[str], data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.sampled_from(values) | around | st.sampled_from([value[:-1] for value in values])))
    redactor = Redactor(values, KEY)
    text = "".join(pieces)
    redacted, _ = redactor.text(text)
    assert not any(value.strip() in MARK.sub("\0", redacted) for value in values)
    assert redactor.text(redacted) == (redacted, 0)
    json_text, _ = redactor.text(json.dumps(pieces))
    assert not any(value.strip() in str(piece) for value in values for piece in json.loads(json_text))


def test_the_longest_of_secrets_that_overlap_names_the_place() -> None:
    short, long = "password1234", "my-password1234-prod"
    redactor = Redactor([short, long], KEY)
    only_long = Redactor([long], KEY).text(long)[0]
    assert redactor.text(f"x{long}y{short}") == (f"x{only_long}y{Redactor([short], KEY).text(short)[0]}", 2)


def test_equal_secrets_are_seen_to_be_equal_and_another_key_gives_another_mark() -> None:
    redactor = Redactor(["first-secret", "other-secret"], KEY)
    one, _ = redactor.text("first-secret")
    assert redactor.text('["first\\u002dsecret"]')[0] == f'["{one}"]'
    assert redactor.text("other-secret")[0] != one
    assert Redactor(["first-secret"], b"z" * 32).text("first-secret")[0] != one
    assert MARK.fullmatch(one)


@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        ("1234567890", '{"pin":1234567890,"n":1}', '{"pin":"M","n":1}'),
        ("1234567890", '{"pin":-91234567890.5}', '{"pin":"M"}'),
        ("nabcdefgh", '{"a":"x\\nabcdefgh"}', '{"a":"xM"}'),
        ("abcdefgh\\", '{"a":"abcdefgh\\"b"}', '{"a":"Mb"}'),
        ('name":"bob', '{"name":"bob","n":2}', '{"M":"M","n":2}'),
        ('name":"bob', '{"surname":"bobby"}', '{"surM":"Mby"}'),
        ('{"type":"service","id":7}', '{"c":{"type":"service","id":7}}', '{"c":"M"}'),
        ('{"type":"service","id":7}', '["{\\"type\\":\\"service\\",\\"id\\":7} "]', '["\\"M\\" "]'),
        ("1234567890", '["{\\"pin\\":1234567890}"]', '["{\\"pin\\":\\"M\\"}"]'),
        ("1234567890", '["call 1234567890"]', '["call M"]'),
        ("é😀é😀é😀é😀", '"\\u00e9\\ud83d\\uDE00é😀\\u00E9\\uD83D\\ude00é😀"', '"M"'),
        ("pass word+1", "a=pass+word%2B1", "a=M"),
        ("pass word 1", "a=pass+word+1", "a=M"),
        ("pass word 1", "pass%20word%201", "M"),
        ("a/b/c/d/e/f", '"a\\/b\\u002fc%2Fd%2fe/f"', '"M"'),
        ("it's a secret", r"{'t': 'it\'s a secret'}", "{'t': 'M'}"),
    ],
)
def test_a_replacement_leaves_literals_whole(secret: str, text: str, expected: str) -> None:
    redacted, _ = Redactor([secret], KEY).text(text)
    assert MARK.sub("M", redacted) == expected


def test_a_secret_like_a_mark_does_not_grow_without_end() -> None:
    for secret in ("redacted", "[redacted", "]abcdefg", '"[redacted:'):
        redactor = Redactor([secret, "other-secret"], KEY)
        once, _ = redactor.text(f'["{secret} other-secretabcdefg"]')
        assert redactor.text(once)[0] == once


def test_a_mark_that_is_not_ours_hides_nothing() -> None:
    assert Redactor(["0123456789abcdef"], KEY).text("[redacted:0123456789abcdef]")[1] == 1


def test_bytes_that_are_not_utf_8_are_compared_as_they_are() -> None:
    secret = b"\xff\xfesecret\xff".decode("utf-8", "surrogateescape")
    redactor = Redactor([secret], KEY)
    assert redactor.text(f"<{secret}>")[1] == 1
    assert redactor.text(quote(secret, errors="surrogateescape"))[1] == 1


def test_short_values_are_named_and_left() -> None:
    redactor = Redactor(["short", "", "long enough", " 1234567 "], KEY, ("A", "B", "C", "D"))
    assert redactor.too_short == ("A", "D")
    assert redactor.active
    assert Redactor(["x", "1234567"], KEY).too_short == ("secret 1", "secret 2")
    assert not Redactor(["x"], KEY).active
    assert not Redactor([], KEY).active


def test_white_space_around_a_secret_is_not_part_of_it() -> None:
    assert Redactor(["from-a-file\n"], KEY).text("key=from-a-file;")[1] == 1


def test_the_environment_has_secrets_by_name() -> None:
    environment = {
        "API_KEY": "1",
        "GithubToken": "2",
        "my_secret": "3",
        "DB_PASSWD": "4",
        "CREDENTIALS": "5",
        "AUTHORIZATION": "6",
        "HOME": "7",
        "EMPTY_KEY": "",
    }
    assert secret_environment(environment) == ["1", "2", "3", "4", "5", "6"]


def test_an_entry_is_a_variable_of_ours_or_a_value() -> None:
    ours = {"DB_URL": "postgres://u:p@h", "HOME": "/h"}
    assert named_secrets(["DB_URL", "db_url"], {"A_KEY": "k", "HOME": "/h"}, ours) == {
        "DB_URL": "postgres://u:p@h",
        "secret 2": "db_url",
        "A_KEY": "k",
    }


def test_json_values_lose_secrets_in_strings_keys_and_numbers() -> None:
    redactor = Redactor(["12345678", "my-secret-key"], KEY)
    value: JSON = {"my-secret-key": ["a my-secret-key", 12345678, 1, True, None], "k": {"n": 12345678.5}}
    redacted, count = redact_json(redactor, value)
    assert count == 4
    assert "my-secret-key" not in str(redacted)
    assert "12345678" not in str(redacted)
    assert redact_json(redactor, redacted) == (redacted, 0)
    same: JSON = {"a": [1, 2.5, "x", None, False]}
    assert redact_json(redactor, same) == (same, 0)


def test_keys_that_become_equal_are_all_kept() -> None:
    value: JSON = {"a my-secret-key": 1, "a my%2Dsecret-key": 2}
    redacted, _ = redact_json(Redactor(["my-secret-key"], KEY), value)
    assert isinstance(redacted, dict)
    assert sorted(redacted.values(), key=str) == [1, 2]


@settings(max_examples=100, deadline=None)
@given(secrets, st.integers(1, 3))
def test_what_finds_says_is_what_text_does(secret: str, levels: int) -> None:
    redactor = Redactor([secret], KEY)
    text = secret
    for _ in range(levels):
        text = json.dumps([text])
    assert redactor.finds(text)
    assert redactor.finds(json.dumps(text)), "a text that stands in the line of a span"
    assert not redactor.finds("nothing of the kind")


@pytest.mark.parametrize("encode", [quote, quote_plus])
@example('a b/c?d=é&"\\%41+1')
@given(secrets)
@settings(max_examples=50, deadline=None)
def test_what_the_standard_library_encodes_is_found(encode: Callable[..., str], secret: str) -> None:
    coded = encode(secret.strip(), errors="surrogateescape")
    assert Redactor([secret], KEY).text(f"q={coded}") == Redactor([secret], KEY).text(f"q={secret.strip()}")


@pytest.mark.parametrize("around", ["x{}…", "'x{}…'", "the text 'x{}'…, and more", '{"a": "x{}\\u2026"}'])
def test_what_is_left_of_a_secret_where_a_text_is_cut_short_goes_too(around: str) -> None:
    secret = "Correct/Horse-77-Battery"
    redactor = Redactor([secret], KEY)
    mark = redactor.text(secret)[0]
    for length in range(4, len(secret)):
        assert redactor.text(around.replace("{}", secret[:length])) == (around.replace("{}", mark), 1)
    for untouched in (secret[:3], secret[3:], f"{secret[:9]} "):
        assert redactor.text(around.replace("{}", untouched)) == (around.replace("{}", untouched), 0)
