"""Secrets, and texts in which one stands in a form of its own."""

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from hypothesis import assume
from hypothesis import strategies as st

from proxy.spans import JSON

Draw: TypeAlias = Callable[[st.SearchStrategy[str]], str]
KEY = b"k" * 32
MARK = re.compile(r"\[redacted:[0-9a-f]{16}\]")

odd = st.sampled_from(list("\"\\/'%+ =&<>{}[]:,\n\t\x01aZ09_-.éß中\u2028😀𝔘\udcff"))
usual = st.sampled_from(list("abcdefXYZ0123456789+/_-"))
secrets = (st.text(odd, min_size=8, max_size=24) | st.text(usual, min_size=8, max_size=40)).filter(
    # A secret made of punctuation alone has nothing between its quotes that could be replaced.
    lambda text: len(text.strip()) >= 8 and sum(char.isalnum() for char in text) >= 3
)
around = st.text(st.sampled_from(list("pqrsPQRS .-é😀")), max_size=12)
WRITE = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n", "\t": "\\t"}


def escape(draw: Draw, text: str) -> str:
    """The inside of a JSON string that says `text`, each character written in a way of its own."""
    written = []
    for char in text:
        ways = [char] if char not in '"\\' and char >= " " else []
        if char in WRITE:
            ways.append(WRITE[char])
        units = char.encode("utf-16-be", "surrogatepass")
        hexes = [units[place : place + 2].hex() for place in range(0, len(units), 2)]
        ways += ["".join(f"\\u{digits}" for digits in hexes), "".join(f"\\u{digits.upper()}" for digits in hexes)]
        written.append(draw(st.sampled_from(ways)))
    return "".join(written)


def percent(draw: Draw, text: str) -> str:
    """`text` percent-encoded, wholly or in part; what would be read otherwise is always encoded."""
    written = []
    for char in text:
        coded = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
        ways = [coded, coded.upper()]
        if char == " ":
            ways.append("+")
        if char not in "%+":
            ways.append(char)
        written.append(draw(st.sampled_from(ways)))
    return "".join(written)


def decoded(text: str) -> list[JSON]:
    """The value of a JSON text, and of every JSON text inside it."""
    found: list[JSON] = []
    waiting: list[JSON] = [json.loads(text)]
    while waiting:
        value = waiting.pop()
        found.append(value)
        match value:
            case dict():
                waiting += [*value.keys(), *value.values()]
            case list():
                waiting += value
            case str() if value[:1] in ("{", "[") and not MARK.match(value):
                waiting.append(json.loads(value))
            case _:
                pass
    return found


@st.composite
def nested(draw: st.DrawFn, secret: str) -> str:
    """JSON with the secret in it, inside up to three levels of JSON text."""
    text = draw(around) + secret + draw(around)
    assume(text[:1] not in ("{", "["))  # it would be taken for JSON by `decoded`
    for _ in range(draw(st.integers(1, 3))):
        body = escape(draw, text)
        text = draw(st.sampled_from([f'{{"a":"{body}","n":[1,true]}}', f'["x\\\\","{body}"]', f'{{"{body}":null}}']))
    return text
