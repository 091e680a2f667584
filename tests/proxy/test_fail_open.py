"""Whatever a client writes, no model server reads a denied call in what was forwarded."""

import json
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.frames import read_strict
from proxy.members import FrameError
from tests.proxy.readers import calls_seen
from tests.proxy.wires import EVIL, Wire, call, wire

DENIED = ("tools/call", "evil")
PLAIN = call()

key_forms = [str, str.upper, str.title, lambda key: key + "\0", lambda key: key + "\0x", lambda key: f"\ufeff{key}"]
keys = st.builds(
    lambda key, form: form(key),
    st.sampled_from(["id", "method", "params", "name", "arguments", "x", ""]),
    st.sampled_from(key_forms),
) | st.sampled_from(["paramſ", "ıd", "İd", "ID", "nAme"])
words = st.sampled_from(["evil", "ok", "tools/call", "Tools/Call", "tools/call\0", " tools/call", "ping", "ev\0il"])


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    """An object that looks like a call, with its members in any case, order and number."""
    pairs = draw(st.lists(st.tuples(keys, values(depth + 1)), max_size=5))
    texts = [f"{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(gaps)}:{value}" for key, value in pairs]
    return "{" + f"{draw(gaps)},{draw(gaps)}".join(texts) + draw(gaps) + "}"


gaps = st.sampled_from(["", "", "", " ", "\r", "\t", "\r\r"])
scalars = (
    words.map(json.dumps)
    | st.sampled_from(
        ["1", "null", "1.5", "NaN", "1e400", '"\\ud800"', '"\\u0065vil"', "9" * 4500, "[]", '"tools\\/call"']
    )
    | st.text(max_size=3).map(json.dumps)
)


def values(depth: int) -> st.SearchStrategy[str]:
    if depth > 3:
        return scalars
    nested = st.deferred(lambda: objects(depth))
    arrays = st.lists(nested | scalars, max_size=3).map(lambda inner: "[" + ",".join(inner) + "]")
    return st.one_of(scalars, scalars, nested, arrays, st.just(PLAIN))


characters = [
    "\r",
    "\n",
    "\0",
    "\ufeff",
    "\x1e",
    "\x0c",
    " ",
    ",",
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    "\u2028",
    "\ud800",
    "A",
]
members = ['"name":"ok",', '"Name":"evil",', '"method":"ping",', '"params":{},', '{"method":"ping"}']
inserts = st.sampled_from([*characters, *members, "//", "/**/", "\\u0000"])


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A denied call with some characters put in, taken out or repeated."""
    text = PLAIN
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        match draw(st.integers(0, 3)):
            case 0:
                text = text[:at] + draw(inserts) + text[at:]
            case 1:
                text = text[:at] + text[at + draw(st.integers(1, 12)) :]
            case 2:
                text = text[:at] + text[at : at + draw(st.integers(1, 40))] + text[at:]
            case _:
                text = text[:at] + text[at : at + 1].swapcase() + text[at + 1 :]
    return text


def written(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in pairs) + "}"


def forms(key: str) -> st.SearchStrategy[str]:
    return st.sampled_from([key, key, key, key.upper(), key.title(), f"{key}\0", f"{key}\0x", key.replace("s", "ſ")])


names = st.tuples(forms("name"), st.sampled_from(['"ok"', '"evil"', '"\\u0065vil"', "1"]))
params = st.lists(names, min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(written)
plain_params = st.sampled_from(['{"name":"ok"}', '{"name":"evil"}'])
calls_and_pings = st.sampled_from(['"tools/call"', '"tools/call"', '"ping"', '"Tools/call"', '"tools/call\\u0000"'])


@st.composite
def near_calls(draw: st.DrawFn) -> str:
    """A call with members in more than one form, either in the envelope or in `params`."""
    pairs = [("method", draw(calls_and_pings)), ("params", draw(params))]
    if draw(st.booleans()):
        pairs += draw(st.lists(st.tuples(forms("method"), calls_and_pings), max_size=2))
        pairs += draw(st.lists(st.tuples(forms("params"), plain_params), max_size=2))
    return written(draw(st.permutations(pairs)))


encodings = st.sampled_from(["utf-8"] * 6 + ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7"])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    text = draw(
        near_calls() | mutations() | objects() | st.lists(objects(), max_size=3).map(lambda all: f"[{','.join(all)}]")
    )
    wrap = draw(st.sampled_from(["{}", "{}", "{}", "[{}]", '{{"id":1,"result":\r{}\r}}', '{{"x":{}}}', "\r{}", "{}\r"]))
    return wrap.format(text).encode(draw(encodings), "surrogatepass") + b"\n"


@settings(max_examples=100, deadline=None)
@given(st.lists(lines() | st.binary(max_size=60), min_size=1, max_size=3), st.sampled_from(["", "2025-03-26"]))
@example([PLAIN.encode()], "")
@example([f"[{PLAIN}]".encode()], "2025-03-26")
@example([f'{{"id":1,"result":\r{PLAIN}\r}}\n'.encode()], "")
@example([b'{"method":"x","params":{"":{"a":1,"a":2}}}\n'], "")
def test_no_reader_sees_a_denied_call_in_what_was_forwarded(stream: list[bytes], version: str) -> None:
    with wire(EVIL) as connection:
        if version:
            connection.negotiate(version)
        connection.client(*stream)
        connection.end()
        assert DENIED not in calls_seen(connection.to_server)
        refused = [span for span in connection.spans("decision") if span.attributes[v.DECISION] == "deny"]
        if connection.to_client:
            assert refused


def test_the_model_servers_see_what_they_are_meant_to_see() -> None:
    for line in (
        PLAIN.encode(),
        f"[[{PLAIN}]]".encode(),
        PLAIN.replace('"name"', '"NAME"').encode(),
        PLAIN.replace('"name"', '"name\\u0000z"').encode(),
        PLAIN.replace('"name"', '"name":"ok","name"').encode(),
        PLAIN.replace('"evil"', '"evil","name":"ok"').encode(),
        f'{{"x":\r{PLAIN}\r}}'.encode(),
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-16-be"),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        b"\x1e" + PLAIN.encode(),
        b'{"a":1} ' + PLAIN.encode(),
    ):
        assert DENIED in calls_seen(line), line


@settings(max_examples=100, deadline=None)
@given(lines() | st.binary(max_size=80))
def test_a_line_is_read_strictly_only_when_all_readers_agree_on_it(line: bytes) -> None:
    try:
        read = read_strict(line)
    except FrameError:
        return
    if read.batch or b"\r" in line.strip():
        return
    seen = calls_seen(line)
    assert len(seen) <= 1


def test_every_refused_line_is_recorded(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(PLAIN, "not json", "[" + PLAIN + "]", call("ok"))
    assert [span.attributes[v.DECISION] for span in connection.spans("decision")] == ["deny", "deny", "deny", "allow"]
