"""Models of providers, against stand-ins that answer as the providers document. No live model is called."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.modelagent import ModelChoice
from harness.models.model import ModelError, Reply, Request, Told, ToolAnswer, ToolOffer
from harness.models.provided import missing_for, provided_model
from proxy.spans import JSON
from tests.harness.models import played
from tests.harness.models.played import ALL, Played
from tests.harness.models.provider_standin import Asked, Canned, StandIn, stand_in

KEY = "not-a-real-key-0123456789"
SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {"customer_id": {"type": "string", "description": "The customer's id."}},
    "required": ["customer_id"],
    "additionalProperties": False,
}
OFFER = ToolOffer(played.TOOL, "Look up a customer.", SCHEMA)
FIRST = Request("agent", "Be exact.", (Told("Look up CUST-004."),), (OFFER,), "", 1)

providers = pytest.mark.parametrize("which", ALL, ids=lambda one: one.provider)
ways = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def api() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


def choice(which: Played, api: StandIn, *, streaming: bool = False) -> ModelChoice:
    return ModelChoice(
        which.provider,
        which.name,
        base_url=api.url + which.base,
        key="A_KEY",
        streaming=streaming,
        temperature=0.5,
        max_tokens=123,
    )


def ask(chosen: ModelChoice, *requests: Request) -> list[Reply]:
    async def all_of_them() -> list[Reply]:
        model = provided_model(chosen, {"A_KEY": KEY})
        try:
            return [await model.ask(request) for request in requests]
        finally:
            await model.close()

    return asyncio.run(all_of_them())


@providers
@ways
def test_text_tool_call_and_token_counts_come_out_of_a_providers_answer(
    which: Played, streaming: bool, api: StandIn
) -> None:
    api.answers = [which.streamed() if streaming else which.whole()]
    [reply] = ask(choice(which, api, streaming=streaming), FIRST)
    assert reply.text == played.TEXT
    assert [(use.tool, use.arguments) for use in reply.uses] == [(played.TOOL, played.ARGUMENTS)]
    assert (reply.usage.input, reply.usage.output, reply.usage.cached) == (played.INPUT, played.OUTPUT, played.CACHED)
    [asked] = api.asked
    assert asked.path.partition("?")[0] == which.paths[streaming]
    assert KEY in asked.headers[which.key_header]


@providers
def test_a_request_has_the_shape_that_the_provider_documents_and_what_came_before(which: Played, api: StandIn) -> None:
    api.answers = [which.whole(), which.whole()]
    chosen = choice(which, api)
    [first] = ask(chosen, FIRST)
    answers = (ToolAnswer(first.uses[0], "no such customer", is_error=True), Told("Try again."))
    ask(chosen, replace(FIRST, messages=(*FIRST.messages, first, *answers)))
    for asked in api.asked:
        SHAPES[which.provider](asked)
    text = str(api.asked[1].body)
    for part in ("Be exact.", "Look up CUST-004.", played.TEXT, "no such customer", "Try again.", "123", "0.5"):
        assert part in text


def check_anthropic(asked: Asked) -> None:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
    from pydantic import TypeAdapter

    body = asked.body
    assert isinstance(body, dict)
    checked = TypeAdapter(MessageCreateParamsNonStreaming).validate_python(body)
    assert list(checked["messages"])
    assert "Be exact." in str(body["system"])
    assert body["tools"] == [{"name": played.TOOL, "description": "Look up a customer.", "input_schema": SCHEMA}]


def check_openai(asked: Asked) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from pydantic import TypeAdapter

    body = asked.body
    assert isinstance(body, dict)
    checked = TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(body)
    roles = [message["role"] for message in checked["messages"]]
    assert roles in (["system", "user"], ["system", "user", "assistant", "tool", "user"])
    function = {"name": played.TOOL, "description": "Look up a customer.", "parameters": SCHEMA}
    assert body["tools"] == [{"type": "function", "function": function}]


def check_gemini(asked: Asked) -> None:
    from google.genai.types import Content, GenerationConfig, Tool

    body = asked.body
    assert isinstance(body, dict)
    contents, tools = body["contents"], body["tools"]
    assert isinstance(contents, list)
    assert isinstance(tools, list)
    roles = [Content.model_validate(content).role for content in contents]
    assert roles in (["user"], ["user", "model", "user", "user"])
    [declared] = Tool.model_validate(tools[0]).function_declarations or []
    assert declared.name == played.TOOL
    assert declared.parameters_json_schema == SCHEMA
    assert GenerationConfig.model_validate(body["generationConfig"]).max_output_tokens == 123


SHAPES = {"anthropic": check_anthropic, "openai": check_openai, "gemini": check_gemini}


@providers
@ways
@pytest.mark.parametrize(("status", "again", "after"), [(429, True, 7.0), (500, True, None), (401, False, None)])
def test_an_error_is_told_with_its_status_and_nothing_is_tried_again_in_secret(
    which: Played, streaming: bool, status: int, again: bool, after: float | None, api: StandIn
) -> None:
    headers = {} if after is None else {"retry_after": f"{after:g}"}
    api.answers = [which.error(status, **headers), which.whole()]
    with pytest.raises(ModelError, match="no luck") as raised:
        ask(choice(which, api, streaming=streaming), FIRST)
    assert (raised.value.status, raised.value.again, raised.value.after) == (status, again, after)
    assert len(api.asked) == 1
    assert KEY not in str(raised.value)


@providers
def test_a_stream_that_is_cut_is_an_error_that_may_be_tried_again(which: Played, api: StandIn) -> None:
    api.answers = [which.streamed(cut=True), which.streamed()]
    with pytest.raises(ModelError) as raised:
        ask(choice(which, api, streaming=True), FIRST)
    assert raised.value.again
    assert len(api.asked) == 1


@providers
def test_an_answer_that_is_no_answer_is_an_error(which: Played, api: StandIn) -> None:
    api.answers = [Canned(b"<html>gateway</html>", 200, {"content-type": "text/html"})]
    with pytest.raises(ModelError):
        ask(choice(which, api), FIRST)


@providers
def test_a_provider_that_cannot_be_reached_is_an_error_that_may_be_tried_again(which: Played, api: StandIn) -> None:
    chosen = replace(choice(which, api), base_url="http://127.0.0.1:1")
    with pytest.raises(ModelError) as raised:
        ask(chosen, FIRST)
    assert raised.value.again


def test_arguments_that_are_not_json_come_back_as_a_problem_of_the_call(api: StandIn) -> None:
    broken = Canned(
        ALL[1].whole().body.replace(b'{\\"customer_id\\"', b"{customer"), 200, {"content-type": "application/json"}
    )
    api.answers = [broken]
    [reply] = ask(choice(ALL[1], api), FIRST)
    assert reply.uses[0].arguments == {}
    assert reply.uses[0].problem.startswith("The arguments are not JSON")


@providers
def test_a_key_that_is_missing_is_named_and_no_model_is_made(which: Played) -> None:
    chosen = ModelChoice(which.provider, which.name)
    assert "set " in missing_for(chosen, {})
    with pytest.raises(ModelError, match="_API_KEY"):
        provided_model(chosen, {})
