"""A stand-in for the model APIs of coding agents, on 127.0.0.1: it plays answers in each API's documented form.

Anthropic Messages, OpenAI Responses and Gemini's generateContent, streamed. Refuses to know MCP and who asks. Which
step of the script is played is told by the request alone: by how many results of tools stand in it.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias

from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Use:
    """Ask for a call of the offered tool whose name ends in `tool`."""

    tool: str
    arguments: dict[str, JSON]


Script: TypeAlias = Sequence[Use | str]
"""Calls to ask for, one a turn, and the text that ends it."""

FRESH, CACHED, OUT = 90, 40, 7
"""What each answer says of tokens: input not from the cache, input from it, output."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the request offers it. `namespace` is that of a group of tools (Responses), "" where there is none."""

    name: str
    namespace: str = ""


@dataclass(slots=True)
class StandIn:
    """Where it listens, and the bodies of the requests it answered so far, oldest first."""

    url: str
    asked: list[dict[str, JSON]] = field(default_factory=list)


Event: TypeAlias = dict[str, JSON]


def step(script: Script, results: int, tools: Sequence[Tool]) -> tuple[Tool, Use] | str:
    """The answer to a request with so many results of tools: a call of an offered tool, or a text.

    A request without tools is none of the agent's turns: agents ask for titles and summaries too.
    """
    if not tools:
        return "A title"
    now = script[min(results, len(script) - 1)]
    if isinstance(now, str):
        return now
    for tool in tools:
        if tool.name.endswith(now.tool):
            return tool, now
    return f"There is no tool {now.tool}"


def anthropic(request: Event, script: Script) -> Iterator[Event]:
    """The events of a Messages stream (platform.claude.com/docs, "Streaming messages")."""
    answer = step(script, _count(request.get("messages"), "tool_result"), _tools(request.get("tools")))
    usage: Event = {"input_tokens": FRESH, "cache_creation_input_tokens": 0, "cache_read_input_tokens": CACHED}
    message: Event = {
        "id": f"msg_{len(json.dumps(request))}", "type": "message", "role": "assistant", "model": request["model"],
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1},
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    if isinstance(answer, str):
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        delta: Event = {"type": "text_delta", "text": answer}
    else:
        tool, use = answer
        block: Event = {"type": "tool_use", "id": "toolu_1", "name": tool.name, "input": {}}
        block["id"] = f"toolu_{len(json.dumps(request))}"
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(use.arguments)}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop: Event = {"stop_reason": "end_turn" if isinstance(answer, str) else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {**usage, "output_tokens": OUT}}
    yield {"type": "message_stop"}


def responses(request: Event, script: Script) -> Iterator[Event]:
    """The events of a Responses stream (platform.openai.com/docs, "Streaming events")."""
    answer = step(script, _count(request.get("input"), "function_call_output"), _tools(request.get("tools")))
    mark = len(json.dumps(request))
    response: Event = {"id": f"resp_{mark}", "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    if isinstance(answer, str):
        part: Event = {"type": "output_text", "text": answer, "annotations": []}
        item: Event = {"type": "message", "id": f"msg_{mark}", "role": "assistant", "content": [part]}
    else:
        tool, use = answer
        item = {"type": "function_call", "id": f"fc_{mark}", "call_id": f"call_{mark}", "name": tool.name}
        item["arguments"] = json.dumps(use.arguments)
        if tool.namespace:
            item["namespace"] = tool.namespace
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}}
    usage: Event = {
        "input_tokens": FRESH + CACHED, "input_tokens_details": {"cached_tokens": CACHED}, "output_tokens": OUT,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": FRESH + CACHED + OUT,
    }  # fmt: skip
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": [item], "usage": usage},
    }


def gemini(request: Event, script: Script) -> Iterator[Event]:
    """The events of streamGenerateContent (ai.google.dev/api/generate-content)."""
    answer = step(script, _count(request.get("contents"), "functionResponse"), _tools(request.get("tools")))
    part: Event = (
        {"text": answer}
        if isinstance(answer, str)
        else {"functionCall": {"name": answer[0].name, "args": answer[1].arguments}}
    )
    usage: Event = {
        "promptTokenCount": FRESH + CACHED, "cachedContentTokenCount": CACHED, "candidatesTokenCount": OUT,
        "totalTokenCount": FRESH + CACHED + OUT,
    }  # fmt: skip
    candidate: Event = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stand-in"}


def _count(value: JSON, kind: str) -> int:
    """How many maps of a kind are in a value: those with that `type`, or, as Gemini has it, with that key."""
    match value:
        case list():
            return sum(_count(one, kind) for one in value)
        case dict():
            if value.get("type") == kind or kind in value:
                return 1
            return sum(_count(one, kind) for one in value.values())
        case _:
            return 0


def _tools(value: JSON, namespace: str = "") -> list[Tool]:
    """Every tool that a request offers, in whatever groups."""
    found: list[Tool] = []
    for one in value if isinstance(value, list) else []:
        match one:
            case {"type": "namespace", "name": str(name), "tools": inner}:
                found += _tools(inner, name)
            case {"functionDeclarations": inner}:
                found += _tools(inner)
            case {"name": str(name)}:
                found.append(Tool(name, namespace))
    return found


@contextmanager
def stand_in(script: Script) -> Iterator[StandIn]:
    """The stand-in, listening for as long as it is wanted."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the tests look at what was asked."""

        def do_GET(self) -> None:
            self.send_error(404)

        def do_HEAD(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            try:
                request = json.loads(body)
            except ValueError:
                request = None
            told.asked.append({"path": self.path, "body": request})
            if path.endswith("/messages"):
                events, named = anthropic(request, script), True
            elif path.endswith("/responses"):
                events, named = responses(request, script), True
            elif path.endswith(":streamGenerateContent"):
                events, named = gemini(request, script), False
            else:
                self.send_error(404)
                return
            text = "".join(
                (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = StandIn(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
