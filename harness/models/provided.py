"""Models of providers, through pydantic-ai's model classes: our messages in their shape, their answers in ours.

Refuses to know agents. Nothing is tried again here, nor by the libraries: who asks does that in sight.
"""

import importlib.util
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.modelagent import ModelAgent, ModelChoice
from harness.models.model import ModelError, Reply, Request, Told, ToolUse, Usage
from harness.models.scripted import AGAIN

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage

EXTRA = "pip install 'wiretrap[models]'"
KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""The variables with a provider's key, the first that is set; `key` in an agent file names another."""


def missing_for(choice: ModelChoice, environment: Mapping[str, str]) -> str:
    """What a model of a provider lacks here, in a sentence; empty where it can be asked."""
    if choice.provider == "scripted":
        return ""
    if importlib.util.find_spec("pydantic_ai") is None:
        return f"models of providers need the extra `models`: {EXTRA}"
    if _key(choice, environment) is None:
        return f"the key of {choice.name} is missing: set {' or '.join(_variables(choice))} in the environment"
    return ""


def key_variables(agent: ModelAgent) -> frozenset[str]:
    """Every variable that may hold a key of a provider: servers are started without them."""
    named = {choice.key for choice in (agent.model, *agent.models.values()) if choice.key is not None}
    return frozenset(name for names in KEYS.values() for name in names) | named


def _variables(choice: ModelChoice) -> tuple[str, ...]:
    return KEYS.get(choice.provider, ()) if choice.key is None else (choice.key,)


def _key(choice: ModelChoice, environment: Mapping[str, str]) -> str | None:
    return next((value for name in _variables(choice) if (value := environment.get(name, "").strip())), None)


def provided_model(choice: ModelChoice, environment: Mapping[str, str]) -> "ProvidedModel":
    """The model. Raises ModelError where the extra or the key is missing."""
    missing = missing_for(choice, environment)
    key = _key(choice, environment)
    if missing or key is None:
        raise ModelError(missing)
    return ProvidedModel(choice, *_library_model(choice, key))


def _library_model(choice: ModelChoice, key: str) -> "tuple[LibraryModel, Callable[[], Awaitable[None]]]":
    """The library's model, with every retry of a client's own switched off, and what closes its connections."""
    match choice.provider:
        case "anthropic":
            from anthropic import AsyncAnthropic  # noqa: PLC0415 (an extra, and slow to import; so below)
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  (the extra may not be there)
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415  (the extra may not be there)

            anthropic = AsyncAnthropic(api_key=key, base_url=choice.base_url, max_retries=0)
            return AnthropicModel(choice.name, provider=AnthropicProvider(anthropic_client=anthropic)), anthropic.close
        case "openai":
            from openai import AsyncOpenAI  # noqa: PLC0415  (the extra may not be there)
            from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415  (the extra may not be there)
            from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415  (the extra may not be there)

            openai = AsyncOpenAI(api_key=key, base_url=choice.base_url, max_retries=0)
            return OpenAIChatModel(choice.name, provider=OpenAIProvider(openai_client=openai)), openai.close
        case "gemini":
            from google.genai import Client  # noqa: PLC0415  (the extra may not be there)
            from google.genai.types import HttpOptions, HttpRetryOptions  # noqa: PLC0415  (the extra may not be there)
            from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415  (the extra may not be there)
            from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415  (the extra may not be there)

            once = HttpRetryOptions(attempts=1)
            gemini = Client(api_key=key, http_options=HttpOptions(base_url=choice.base_url, retry_options=once))
            return GoogleModel(choice.name, provider=GoogleProvider(client=gemini)), gemini.aio.aclose
        case _:
            raise ModelError(f"{choice.provider} is no provider")


@dataclass(slots=True)
class ProvidedModel:
    """One model of a provider."""

    choice: ModelChoice
    library: "LibraryModel"
    shut: Callable[[], Awaitable[None]]

    @property
    def name(self) -> str:
        """As the provider calls it."""
        return self.choice.name

    async def ask(self, request: Request) -> Reply:
        """One request over the wire, streamed or not. Raises ModelError."""
        from pydantic_ai.exceptions import AgentRunError, UserError  # noqa: PLC0415  (the extra may not be there)

        messages = _messages(request)
        try:
            if self.choice.streaming:
                async with self.library.request_stream(messages, self._settings(), _offered(request)) as stream:
                    async for _ in stream:
                        pass
                    return _reply(stream.get(), stream.usage)
            response = await self.library.request(messages, self._settings(), _offered(request))
            return _reply(response, response.usage)
        except (AgentRunError, UserError) as error:
            raise _failure(error) from error
        except (
            Exception
        ) as error:  # each provider's client has its own: an answer that is none, a connection that broke
            raise ModelError(f"{type(error).__name__}: {error}", again=True) from error

    async def close(self) -> None:
        """Close the connections."""
        await self.shut()

    def _settings(self) -> "ModelSettings":
        from pydantic_ai.settings import ModelSettings  # noqa: PLC0415  (the extra may not be there)

        settings = ModelSettings(max_tokens=self.choice.max_tokens)
        if self.choice.temperature is not None:
            settings["temperature"] = self.choice.temperature
        return settings


def _offered(request: Request) -> "ModelRequestParameters":
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415  (the extra may not be there)
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415  (the extra may not be there)

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
                # The server's own schema is offered, not one that a provider's strict mode would take.
                strict=False,
            )
            for tool in request.tools
        ]
    )


def _messages(request: Request) -> "list[ModelMessage]":
    from pydantic_ai.messages import (  # noqa: PLC0415  (the extra may not be there)
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    found: list[ModelMessage] = []
    parts: list[ModelRequestPart] = [SystemPromptPart(request.system)]
    for message in request.messages:
        match message:
            case Told(text):
                parts.append(UserPromptPart(text))
            case Reply(original=ModelResponse() as original):
                found += [ModelRequest(parts), original]
                parts = []
            case Reply(text=text, uses=uses):
                calls = [ToolCallPart(use.tool, use.arguments, use.id) for use in uses]
                found += [ModelRequest(parts), ModelResponse([*([TextPart(text)] if text else []), *calls])]
                parts = []
            case answer:
                parts.append(
                    ToolReturnPart(
                        answer.use.tool,
                        answer.text,
                        tool_call_id=answer.use.id,
                        outcome="failed" if answer.is_error else "success",
                    )
                )
    return [*found, ModelRequest(parts)]


def _reply(response: "ModelResponse", usage: "RequestUsage") -> Reply:
    from pydantic_ai.messages import TextPart, ToolCallPart  # noqa: PLC0415  (the extra may not be there)

    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    uses = tuple(
        _use(part.tool_call_id, part.tool_name, part.args) for part in response.parts if isinstance(part, ToolCallPart)
    )
    return Reply("".join(texts), uses, _usage(usage), original=response)


def _use(number: str, tool: str, arguments: object) -> ToolUse:
    try:
        value = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments or {}
    except (ValueError, RecursionError) as error:
        return ToolUse(number, tool, {}, f"The arguments are not JSON: {error}")
    if not isinstance(value, dict):
        return ToolUse(number, tool, {}, "The arguments are not a JSON object.")
    return ToolUse(number, tool, value)


def _usage(usage: "RequestUsage") -> Usage:
    """The library counts what came from a cache into its input tokens; here it stands apart."""
    if not usage.has_values():
        return Usage()
    cached = usage.cache_read_tokens
    return Usage(usage.input_tokens - cached, usage.output_tokens, cached)


def _failure(error: Exception) -> ModelError:
    from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError  # noqa: PLC0415  (the extra may not be there)

    match error:
        case ModelHTTPError(status_code=status, headers=headers):
            after = _seconds((headers or {}).get("retry-after"))
            return ModelError(str(error), status=status, again=status in AGAIN, after=after)
        case ModelConnectionError():
            return ModelError(str(error), again=True)
        case _:
            return ModelError(f"{type(error).__name__}: {error}")


def _seconds(text: str | None) -> float | None:
    """A retry-after in seconds; its other form, a date, is left to our own pace."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
