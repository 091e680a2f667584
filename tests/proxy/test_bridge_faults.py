"""Faults where a bridge stands between: HTTP in front of stdio in both eras, and stdio in front of HTTP."""

import json
from pathlib import Path

import pytest

from proxy import vocabulary as v
from proxy.faults import Fault, FaultPlan, parse_faults
from proxy.httpwords import Headers
from proxy.spans import JSON, Span
from tests.proxy.bridgewires import BridgeRun, Handler, Server, bridged, echo, events, modern, told
from tests.proxy.connectwires import connected, method_of, session
from tests.proxy.httpupstream import Request
from tests.proxy.httpwires import Client
from tests.proxy.wires import call

ERAS = ("old", "new")
WHOLE: JSON = [{"type": "text", "text": "abcdef"}]
HALF: JSON = [{"type": "text", "text": "abc"}]
BROKEN = {"code": -32603, "message": "the tool failed: internal error"}


def faults(*kinds: str) -> tuple[Fault, ...]:
    """The first call of `get` meets the first of these kinds, and so on."""
    more: dict[str, dict[str, JSON]] = {"delay": {"seconds": 0.01}, "error": {"as": "error"}}
    given: list[JSON] = [
        {"tool": "mcp/x/get", "call": number, "fault": kind, **more.get(kind, {})}
        for number, kind in enumerate(kinds, 1)
    ]
    return parse_faults(given, "test", lambda _: None)


def texting(server: Server, message: JSON) -> None:
    """Answer a call with a text."""
    if isinstance(message, dict) and message.get("method") == "tools/call":
        server.result(message, content=WHOLE)
    else:
        echo(server, message)


def streaming(server: Server, message: JSON) -> None:
    """The same, and a notification goes before it, so that it comes in a stream."""
    if isinstance(message, dict) and message.get("method") == "tools/call":
        progress: JSON = {"progressToken": message["id"], "progress": 1}
        server.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    texting(server, message)


def asked(bridge: BridgeRun, era: str) -> tuple[str, Headers]:
    """A call of `get`, and its headers."""
    return (call("get"), bridge.open()) if era == "old" else (modern(name="get"), told(name="get"))


def answer(body: bytes) -> dict[str, JSON]:
    """The answer to a call, whether it came in a stream or not; what else the stream had is as the server sent it."""
    messages = events(body) if body.startswith((b"event", b"data")) else [json.loads(body)]
    *others, last = messages
    assert [one["method"] for one in others if isinstance(one, dict)] == ["notifications/progress"] * len(others)
    assert isinstance(last, dict)
    return last


def seen(spans: list[Span]) -> list[tuple[str, ...]]:
    """Outcome, fault and the server's own outcome of each call."""
    found = [span for span in spans if span.attributes[v.METHOD] == "tools/call"]
    keys = (v.OUTCOME, v.FAULT, v.FAULT_OUTCOME)
    found.sort(key=lambda span: span.start_ns)
    return [tuple(str(span.attributes.get(key, "")) for key in keys) for span in found]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("handler", [texting, streaming])
def test_an_answer_over_a_bridge_loses_what_a_fault_takes(era: str, handler: Handler, tmp_path: Path) -> None:
    with bridged(tmp_path, handler, faults=faults("error", "empty", "cut", "delay")) as bridge:
        body, headers = asked(bridge, era)
        error, *others = [answer(bridge.post(body, headers).body) for _ in range(5)]
        assert error["error"] == BROKEN
        contents = [one["result"]["content"] for one in others if isinstance(one["result"], dict)]
        assert contents == [[], HALF, WHOLE, WHOLE]
        (server,) = bridge.children.servers
        assert len([one for one in server.messages if one.get("method") == "tools/call"]) == 4
        assert seen(bridge.spans("request")) == [
            ("protocol_error", "error", ""),
            ("ok", "empty", "ok"),
            ("ok", "cut", "ok"),
            ("ok", "delay", ""),
            ("ok", "", ""),
        ]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("handler", [texting, streaming])
def test_over_a_bridge_an_answer_that_is_withheld_never_comes_and_the_next_call_is_another(
    era: str, handler: Handler, tmp_path: Path
) -> None:
    with bridged(tmp_path, handler, faults=faults("timeout", "lost")) as bridge:
        body, headers = asked(bridge, era)
        for number in range(2):
            with Client(bridge.port) as client:
                client.send("POST", "/mcp", body.encode(), headers)
                # Later calls on other connections are answered while this one waits.
                if number:
                    bridge.children.nth(0).wait(lambda server: b'"get"' in b"".join(server.lines))
                    if handler is streaming:
                        assert client.head().status == 200
                        assert client.until(b"progress")
                other = call("other") if era == "old" else modern(name="other")
                assert bridge.post(other, headers if era == "old" else told(name="other")).status == 200
        assert answer(bridge.post(body, headers).body)["result"] == {"content": WHOLE}
        spans = [span for span in bridge.spans("request") if span.attributes.get(v.TOOL_NAME) == "get"]
    withheld, lost, last = seen(spans)
    assert withheld in [("unanswered", "timeout", ""), ("cancelled", "timeout", "")]
    assert (lost, last) == (("unanswered", "lost", "ok"), ("ok", "", ""))


def test_stdio_in_front_of_http_meets_the_same_faults(tmp_path: Path) -> None:
    def rest(request: Request) -> None:
        asked = json.loads(request.body)
        if method_of(request) == "tools/call":
            text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": WHOLE}}).encode()
            request.answer(text)

    kinds = ("error", "timeout", "lost", "empty", "cut", "delay")
    with connected(tmp_path, session(rest), faults=FaultPlan(faults(*kinds))) as one:
        one.begin()
        got: list[JSON] = []
        for number in range(1, 8):
            one.send(call("get", id_text=str(number)))
            if number not in {2, 3}:
                message = one.read()
                result = message.get("result")
                got.append([message["id"], result["content"] if isinstance(result, dict) else message["error"]])
        assert got == [[1, BROKEN], [4, []], [5, HALF], [6, WHOLE], [7, WHOLE]]
        one.end()
        assert len([request for request in one.upstream.requests if b"tools/call" in request.body]) == 5
        assert seen(one.spans("request")) == [
            ("protocol_error", "error", ""),
            ("unanswered", "timeout", ""),
            ("unanswered", "lost", "ok"),
            ("ok", "empty", "ok"),
            ("ok", "cut", "ok"),
            ("ok", "delay", ""),
            ("ok", "", ""),
        ]
