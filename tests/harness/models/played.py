"""What each provider answers, by its documentation: text, a tool call, token counts, streamed and not, and errors."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.modelagent import Provider
from proxy.spans import JSON
from tests.harness.models.provider_standin import Canned, as_events, as_json

TEXT, TOOL = "I look it up.", "get_customer_profile"
ARGUMENTS: dict[str, JSON] = {"customer_id": "CUST-004"}
INPUT, OUTPUT, CACHED = 70, 21, 30
"""Tokens: input without what was cached, output, cached input."""


@dataclass(frozen=True, slots=True)
class Played:
    """One provider. `error` makes its error answer of a status and a message; `base` is the path of its API."""

    provider: Provider
    name: str
    base: str
    whole: Callable[[], Canned]
    streamed: Callable[..., Canned]
    error: Callable[..., Canned]
    key_header: str
    paths: tuple[str, str]


def _anthropic_usage() -> dict[str, JSON]:
    return {"input_tokens": INPUT, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 0}


def anthropic_whole() -> Canned:
    content: list[JSON] = [
        {"type": "text", "text": TEXT},
        {"type": "tool_use", "id": "toolu_01", "name": TOOL, "input": ARGUMENTS},
    ]
    return as_json({
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": content,
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {**_anthropic_usage(), "output_tokens": OUTPUT},
    })  # fmt: skip


def anthropic_streamed(*, cut: bool = False) -> Canned:
    message: dict[str, JSON] = {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {**_anthropic_usage(), "output_tokens": 1},
    }  # fmt: skip
    tool: JSON = {"type": "tool_use", "id": "toolu_01", "name": TOOL, "input": {}}
    events: list[JSON] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I look "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "it up."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": tool},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"cust'}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": 'omer_id": "CUST-004"}'},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": OUTPUT},
        },
        {"type": "message_stop"},
    ]
    return as_events(events[:5] if cut else events, named=True, cut=cut)


def anthropic_error(status: int, **headers: str) -> Canned:
    kind = {429: "rate_limit_error", 401: "authentication_error"}.get(status, "api_error")
    return as_json({"type": "error", "error": {"type": kind, "message": "no luck"}}, status, **headers)


def _openai_usage() -> JSON:
    return {
        "prompt_tokens": INPUT + CACHED,
        "completion_tokens": OUTPUT,
        "total_tokens": INPUT + CACHED + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED},
    }


def openai_whole() -> Canned:
    call: JSON = {
        "id": "call_01",
        "type": "function",
        "function": {"name": TOOL, "arguments": '{"customer_id": "CUST-004"}'},
    }
    message: JSON = {"role": "assistant", "content": TEXT, "tool_calls": [call], "refusal": None}
    return as_json({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1764000000, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}],
        "usage": _openai_usage(),
    })  # fmt: skip


def openai_streamed(*, cut: bool = False) -> Canned:
    def chunk(delta: JSON, reason: str | None = None) -> JSON:
        return {
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1764000000, "model": "gpt-4o-mini",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }  # fmt: skip

    def called(index: int, function: JSON, **more: JSON) -> JSON:
        return {"tool_calls": [{"index": index, "function": function, **more}]}

    events: list[JSON] = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "I look "}),
        chunk({"content": "it up."}),
        chunk(called(0, {"name": TOOL, "arguments": ""}, id="call_01", type="function")),
        chunk(called(0, {"arguments": '{"cust'})),
        chunk(called(0, {"arguments": 'omer_id": "CUST-004"}'})),
        chunk({}, "tool_calls"),
        {
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1764000000, "model": "gpt-4o-mini",
            "choices": [], "usage": _openai_usage(),
        },
        "[DONE]",
    ]  # fmt: skip
    return as_events(events[:3] if cut else events, cut=cut)


def openai_error(status: int, **headers: str) -> Canned:
    return as_json({"error": {"message": "no luck", "type": "error", "param": None, "code": None}}, status, **headers)


def _gemini_usage() -> JSON:
    return {
        "promptTokenCount": INPUT + CACHED,
        "cachedContentTokenCount": CACHED,
        "candidatesTokenCount": OUTPUT,
        "totalTokenCount": INPUT + CACHED + OUTPUT,
    }


def _gemini(parts: list[JSON], *, last: bool = True) -> JSON:
    candidate: dict[str, JSON] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": _gemini_usage(),
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r1",
    }


def gemini_whole() -> Canned:
    return as_json(_gemini([{"text": TEXT}, {"functionCall": {"name": TOOL, "args": ARGUMENTS}}]))


def gemini_streamed(*, cut: bool = False) -> Canned:
    events: list[JSON] = [
        _gemini([{"text": "I look "}], last=False),
        _gemini([{"text": "it up."}], last=False),
        _gemini([{"functionCall": {"name": TOOL, "args": ARGUMENTS}}]),
    ]
    return as_events(events[:2] if cut else events, cut=cut)


def gemini_error(status: int, **headers: str) -> Canned:
    word = {429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED"}.get(status, "INTERNAL")
    return as_json({"error": {"code": status, "message": "no luck", "status": word}}, status, **headers)


ALL = (
    Played(
        "anthropic", "claude-haiku-4-5", "", anthropic_whole, anthropic_streamed, anthropic_error, "authorization",
        ("/v1/messages", "/v1/messages"),
    ),
    Played(
        "openai", "gpt-4o-mini", "/v1", openai_whole, openai_streamed, openai_error, "authorization",
        ("/v1/chat/completions", "/v1/chat/completions"),
    ),
    Played(
        "gemini", "gemini-2.5-flash", "", gemini_whole, gemini_streamed, gemini_error, "x-goog-api-key",
        ("/v1beta/models/gemini-2.5-flash:generateContent", "/v1beta/models/gemini-2.5-flash:streamGenerateContent"),
    ),
)  # fmt: skip
