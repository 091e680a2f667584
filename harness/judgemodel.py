"""A model of a provider as a judge, over the chat completions that Gemini, Anthropic, OpenAI and most others offer.

Refuses to know what is asked. Nothing is tried again here, no redirect is followed, and the key is written nowhere.
"""

import asyncio
import http.client
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from harness.judges import SECONDS, JudgeError, JudgeFileError
from harness.opinion import Question
from proxy.problem import Problem
from proxy.spans import JSON

DEFAULT = "gemini-2.5-flash"
"""The judge of agent-mark, which `default` names."""
URL = "WIRETRAP_JUDGE_URL"
"""The variable with another address for the provider's, such as that of a model of one's own."""
LONGEST = 1 << 20
"""Bytes of an answer that are read."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider takes chat completions, and the variables that may hold its key, the first that is set."""

    url: str
    keys: tuple[str, ...]


PROVIDERS: Mapping[str, Provider] = {
    # ai.google.dev/gemini-api/docs/openai
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    # docs.anthropic.com/en/api/openai-sdk
    "anthropic": Provider("https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",)),
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
}


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """One model at `url`, asked at temperature 0."""

    name: str
    url: str
    key: str = field(repr=False)

    async def ask(self, system: str, prompt: str, question: Question, attempt: int) -> str:
        """The text of its answer. Raises JudgeError."""
        messages: JSON = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        body = json.dumps({"model": self.name, "temperature": 0, "messages": messages}).encode()
        return await asyncio.to_thread(self._post, body)

    def _post(self, body: bytes) -> str:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=SECONDS)
        try:
            headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
            connection.request("POST", f"{parts.path.rstrip('/')}/chat/completions", body, headers)
            answer = connection.getresponse()
            text = answer.read(LONGEST)
        except (OSError, http.client.HTTPException) as error:
            raise JudgeError(f"the judge cannot be reached: {type(error).__name__}") from None
        finally:
            connection.close()
        if answer.status != 200:
            # What a provider says of an error may hold a part of the key.
            raise JudgeError(f"the judge answered with the HTTP status {answer.status}")
        return _content(text)


def _content(text: bytes) -> str:
    """The text of a chat completion. Raises JudgeError."""
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    match value:
        case {"choices": [{"message": {"content": str() as content}}, *_]}:
            return content
        case _:
            raise JudgeError("the judge's answer is no chat completion with text")


def model_judge(spec: str, environment: Mapping[str, str] = os.environ) -> ModelJudge:
    """The judge of `NAME` or `PROVIDER:NAME`; `default` is DEFAULT. Raises JudgeFileError without a key."""
    provider, colon, name = spec.partition(":")
    if not colon or provider not in PROVIDERS:
        name = DEFAULT if spec == "default" else spec
        provider = "gemini" if name.startswith("gemini") else "anthropic" if name.startswith("claude") else "openai"
    told = PROVIDERS[provider]
    key = next((value for one in told.keys if (value := environment.get(one, "").strip())), None)
    url = environment.get(URL) or told.url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise JudgeFileError([Problem("--judge", None, "", f"{URL} is no http(s) address")])
    if not name:
        raise JudgeFileError([Problem("--judge", None, "", f"{spec!r} names no model")])
    if key is None:
        wanted = f"set {' or '.join(told.keys)} in the environment"
        raise JudgeFileError([Problem("--judge", None, "", f"the key for {name} is missing: {wanted}")])
    return ModelJudge(name, url, key)
