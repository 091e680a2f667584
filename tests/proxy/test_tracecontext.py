import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.frames import read_strict
from proxy.record import Place
from proxy.spans import JSON
from proxy.tracecontext import spliced
from tests.proxy.wires import EVIL, OBSERVING, Wire

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE}-{PARENT}-01"
OURS = "f" * 16
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(VALID) | st.just(f'"{VALID}"'),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=6) | st.just("traceparent"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
LAYOUTS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :  ")])


def request(meta: JSON = None, *, id_text: int = 1, method: str = "tools/call", **params: JSON) -> dict[str, JSON]:
    body: dict[str, JSON] = {"name": "t", "arguments": {}, **params}
    if meta is not None:
        body["_meta"] = meta
    return {"jsonrpc": "2.0", "id": id_text, "method": method, "params": body}


def splicing(wire: Wire) -> Wire:
    wire.relay.session.connection.splice = True
    return wire


@settings(max_examples=200, deadline=None)
@given(JSONS, st.dictionaries(st.text(max_size=6), JSONS, max_size=3), LAYOUTS, st.booleans(), st.booleans())
def test_only_the_16_bytes_of_the_parent_id_change(
    arguments: JSON, meta: dict[str, JSON], layout: tuple[str, str], ascii: bool, first: bool
) -> None:
    meta = {"traceparent": VALID, **meta} if first else {**meta, "traceparent": VALID}
    meta["traceparent"] = VALID
    message = request({}, arguments=arguments)
    params = message["params"]
    assert isinstance(params, dict)
    message["params"] = {"_meta": meta, **{k: x for k, x in params.items() if k != "_meta"}} if first else {
        **params, "_meta": meta}  # fmt: skip
    raw = json.dumps(message, separators=layout, ensure_ascii=ascii).encode() + b"\r\n"
    (read,) = read_strict(raw).messages
    found = spliced(raw, [(read, Place(TRACE, OURS, PARENT))])
    assert len(found) == len(raw)
    different = [at for at in range(len(raw)) if raw[at] != found[at]]
    assert len(different) == 16
    assert different[-1] - different[0] == 15
    again = json.loads(found)
    assert again["params"]["_meta"].pop("traceparent") == f"00-{TRACE}-{OURS}-01"
    whole = json.loads(raw)
    whole["params"]["_meta"].pop("traceparent")
    assert again == whole


@pytest.mark.parametrize("policy", [None, EVIL, OBSERVING], ids=["none", "enforced", "observed"])
def test_the_span_of_a_call_becomes_the_parent_of_the_servers(policy: None, tmp_path: Path) -> None:
    wire = splicing(Wire(tmp_path, policy))
    wire.client(json.dumps(request({"traceparent": VALID, "progressToken": 7})))
    wire.end()
    call = wire.only("request")
    assert (call.trace_id, call.parent_id) == (TRACE, PARENT)
    assert json.loads(wire.to_server)["params"]["_meta"] == {
        "traceparent": f"00-{TRACE}-{call.span_id}-01",
        "progressToken": 7,
    }
    decision = wire.only("decision")
    assert PARENT in str(decision.attributes[v.REQUEST])


def test_without_splice_the_bytes_stay(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    line = json.dumps(request({"traceparent": VALID})).encode() + b"\n"
    wire.client(line)
    assert wire.to_server == line
    wire.end()


def test_each_message_of_an_array_is_spliced_with_its_own_span(tmp_path: Path) -> None:
    wire = splicing(Wire(tmp_path, EVIL))
    wire.negotiate("2025-03-26")
    other = f"00-{'1' * 32}-{'2' * 16}-00"
    note: JSON = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": {"traceparent": VALID}}}
    calls: list[JSON] = [request({"traceparent": VALID}), request({"traceparent": other}, id_text=2), note]
    wire.client(json.dumps(calls))
    wire.end()
    first, second, third = json.loads(wire.to_server)
    spans = {span.attributes[v.REQUEST_ID]: span for span in wire.spans("request")}
    assert first["params"]["_meta"]["traceparent"] == f"00-{TRACE}-{spans['1'].span_id}-01"
    assert second["params"]["_meta"]["traceparent"] == f"00-{'1' * 32}-{spans['2'].span_id}-00"
    told = next(span for span in wire.spans("notification") if span.attributes[v.METHOD] == "notifications/x")
    assert third["params"]["_meta"]["traceparent"] == f"00-{TRACE}-{told.span_id}-01"


def test_a_call_that_has_only_a_decision_is_spliced_with_that(tmp_path: Path) -> None:
    wire = splicing(Wire(tmp_path))
    call = request({"traceparent": VALID})
    del call["id"]
    wire.client(json.dumps(call))
    wire.end()
    decision = wire.only("decision")
    assert decision.parent_id == PARENT
    assert decision.span_id in json.loads(wire.to_server)["params"]["_meta"]["traceparent"]


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(request({"traceparent": VALID})).replace("b7ad", "b7a\\u0064"),
        json.dumps(request({"traceparent": VALID.upper()})),
        json.dumps(request({"traceparent": f"00-{'0' * 32}-{PARENT}-01"})),
        json.dumps(request({"traceparent": f"{VALID}-more"})),
        json.dumps(request({"traceparent": [VALID]})),
        json.dumps(request([VALID])),
        json.dumps(request(traceparent=VALID)),
        json.dumps(request(arguments={"_meta": {"traceparent": VALID}})),
        json.dumps(request({"traceparent": VALID})).replace('"_meta"', '"_meta": {}, "_meta"'),
        json.dumps(request({"traceparent": VALID}, arguments={"x": "NaN"})).replace('"NaN"', "NaN"),
        json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"_meta": {"traceparent": VALID}}}),
        json.dumps({"jsonrpc": "2.0", "params": {"_meta": {"traceparent": VALID}}}),
    ],
)
def test_what_is_no_plain_valid_traceparent_of_a_strict_message_is_left_alone(line: str, tmp_path: Path) -> None:
    wire = splicing(Wire(tmp_path))
    wire.client(line)
    assert wire.to_server == line.encode() + b"\n"
    wire.end()


def test_a_key_that_is_spelled_with_escapes_is_still_the_key(tmp_path: Path) -> None:
    wire = splicing(Wire(tmp_path))
    wire.client(json.dumps(request({"traceparent": VALID})).replace('"traceparent"', '"trace\\u0070arent"'))
    wire.end()
    assert wire.only("request").span_id.encode() in wire.to_server


def test_a_denied_call_is_refused_as_it_was_sent(tmp_path: Path) -> None:
    wire = splicing(Wire(tmp_path, EVIL))
    wire.client(json.dumps(request({"traceparent": VALID}, name="evil")))
    assert wire.to_server == b""
    wire.end()
    assert PARENT in str(wire.only("decision").attributes[v.REQUEST])


def test_with_a_broken_record_and_a_policy_nothing_spliced_goes_on(tmp_path: Path) -> None:
    wire = splicing(Wire(tmp_path, EVIL))
    wire.break_record()
    wire.client(json.dumps(request({"traceparent": VALID})))
    assert wire.to_server == b""
    assert json.loads(wire.to_client)["result"]["isError"] is True
