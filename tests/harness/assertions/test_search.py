"""That nothing is lost by passing over in bulk what can say nothing."""

import base64
import binascii
import json
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.assertions.search import Search, Sought
from harness.disclosure import Looked, Marker, decodings, is_bare
from harness.sent import SEPARATOR

MARKERS = ("TENANT-B-7731", "two  Words here", "Stra\u00dfe 12345", "ab12", "a  b", "\ufdfa\ufdfa", "k\0k k\0k\0k")
Writing = Callable[[str], str]
WRITINGS: tuple[Writing, ...] = (
    str,
    str.upper,
    str.swapcase,
    lambda text: text[::-1],
    lambda text: text.replace(" ", " \n\t"),
    "\u200b".join,
    lambda text: "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text),
    json.dumps,
    lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    quote,
    lambda text: "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")),
    lambda text: quote(text).replace("%20", "+"),
    lambda text: text.replace(" ", "+"),
    lambda text: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode(),
    lambda text: base64.urlsafe_b64encode(b"x" + text.encode("utf-8", "surrogatepass") + b"?>").decode().strip("="),
    lambda text: base64.encodebytes(b"wrapped " * 5 + text.encode("utf-16-le", "surrogatepass")).decode(),
    lambda text: base64.b64encode(text.encode("utf-16-le", "surrogatepass")).decode(),
    lambda text: text.encode("utf-8", "surrogatepass").hex(),
    lambda text: "0x" + binascii.hexlify(text.encode("utf-8", "surrogatepass"), b" ").decode().replace(" ", ", 0x"),
    lambda text: "".join(f"\\x{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")),
)
pieces = st.one_of(
    st.text(st.characters(), max_size=8),
    st.text("abcdef0123456789 .:-,x\\%+\n\0", max_size=24),
    st.sampled_from(
        ["mcp/crm/get_customer_profile", "550e8400-e29b-41d4-a716-446655440000", "deadbeef" * 3, " ", "\0"]
    ),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Text with a marker in it or a part of one, written in up to three ways one after the other, between others."""
    marker = draw(st.sampled_from(MARKERS))
    text = marker[: draw(st.sampled_from([len(marker), len(marker), len(marker) - 1]))]
    for writing in draw(st.lists(st.sampled_from(WRITINGS), max_size=3)):
        text = writing(draw(st.sampled_from(["", "x", "see "])) + text + draw(st.sampled_from(["", ".", " ok"])))
    return draw(pieces) + text + draw(pieces)


def searches() -> list[Search]:
    return [Search([Sought(marker, Marker.of(marker))]) for marker in MARKERS]


@settings(max_examples=300)
@given(st.lists(st.one_of(texts(), pieces), max_size=5))
def test_a_text_that_says_something_is_never_passed_over(said: list[str]) -> None:
    whole = [SEPARATOR.join(said[:place]) for place in range(len(said) + 1)]
    for search in searches():
        suspected = {text for _, text in search.suspected([*said, *whole], str)}
        for text in (*said, *whole):
            assert search.forms(text) == (None,) or text in suspected


@settings(max_examples=300)
@given(st.lists(st.one_of(texts(), pieces), max_size=4))
@example(["%20", "a+b"])
@example(["41" * 8, "x"])
def test_texts_are_bare_only_where_nothing_of_each_can_be_decoded(said: list[str]) -> None:
    if is_bare(SEPARATOR.join(said)):
        assert all(decodings(text) == ((), False) for text in said)
        assert all(Looked(text).raw == (text,) for text in said)


def test_plain_words_names_and_ids_are_passed_over_together() -> None:
    search = Search([Sought("tenant", Marker.of("TENANT-B-7731"))])
    calls = [
        f"mcp/crm/get_customer_profile\0customer_id\0CUST-{number:05}\0the quick brown fox" for number in range(200)
    ]
    assert is_bare(SEPARATOR.join(calls))
    assert list(search.suspected([*calls, "550e8400-e29b-41d4-a716-446655440000"], str)) == []
    found = list(search.suspected([*calls, "of tenant-b-7731"], str))
    assert [text for _, text in found] == ["of tenant-b-7731"]
