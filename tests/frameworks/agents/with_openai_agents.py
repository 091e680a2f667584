"""Two agents of the OpenAI Agents SDK over a model of ours: the first hands over to the second, which calls a tool."""

from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openai.types.responses.response_usage import InputTokensDetails

set_tracing_disabled(True)


def call(name, arguments):
    return ResponseFunctionToolCall(call_id=name, name=name, arguments=arguments, type="function_call")


def said(text):
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[part])


class Scripted(Model):
    def __init__(self, *outputs):
        self.model = "gpt-4.1"
        self.outputs = list(outputs)

    async def get_response(self, *_, **__):
        usage = Usage(requests=1, input_tokens=10, output_tokens=3, total_tokens=13)
        usage.input_tokens_details = InputTokensDetails(cached_tokens=4, cache_write_tokens=0)
        return ModelResponse(output=[self.outputs.pop(0)], usage=usage, response_id=None)

    async def stream_response(self, *_, **__):
        raise NotImplementedError
        yield


def build(mcp_servers):
    reader = Agent("reader", model=Scripted(call("get_ticket", '{"ticket_id": 1}'), said("Ticket 1 is open.")))
    reader.mcp_servers = mcp_servers
    return Agent("desk", model=Scripted(call("transfer_to_reader", "{}")), handoffs=[reader])
