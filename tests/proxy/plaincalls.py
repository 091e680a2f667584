"""Calls as clients write them, and nearly so, drawn by hypothesis."""

import json

from hypothesis import strategies as st

from tests.proxy.test_bytes import json_values

names = st.text(max_size=4) | st.sampled_from(["name", "arguments", "method", "tools/call", 'a"', "\\", "\r"])
written = st.builds(
    lambda id_, name, value, ascii_, gaps: json.dumps(
        {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": name, "arguments": value}},
        ensure_ascii=ascii_,
        separators=gaps,
    ).encode("utf-8", "surrogatepass"),
    st.integers(-2, 10**19) | names,
    names,
    json_values,
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)


texts = st.text(max_size=4) | st.sampled_from(["method", "\\", "}}", ",", '":', "__proto__", "a"])
quoted = st.builds(lambda text, ascii_: json.dumps(text, ensure_ascii=ascii_), texts, st.booleans())
scalars = quoted | st.sampled_from(
    ["1", "-0", "01", "1.", "0.5e-3", "1e999", "true", "null", "NaN", "-", '"\\/"', "[]", "{}"]
)
flats = st.builds(
    lambda members, gap, colon: ("{" + gap.join(f"{key}{colon}{value}" for key, value in members) + "}").encode(
        "utf-8", "surrogatepass"
    ),
    st.lists(st.tuples(quoted | st.sampled_from(['"a"', '"b"']), scalars), max_size=4),
    st.sampled_from([",", ", ", " ,", ",,"]),
    st.sampled_from([":", ": ", " :"]),
)
flat_calls = st.builds(
    lambda flat: b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":' + flat + b"}}",
    flats,
)
