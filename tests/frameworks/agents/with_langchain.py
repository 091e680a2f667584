"""An agent of LangChain with its fake model, which asks for one tool and then answers."""

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


async def build(tools):
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13, "input_token_details": {"cache_read": 4}}
    model = {"model_name": "gpt-4.1-2025-04-14"}
    call = {"name": "get_ticket", "args": {"ticket_id": 1}, "id": "c1", "type": "tool_call"}
    said = [
        AIMessage("", tool_calls=[call], usage_metadata=usage, response_metadata=model),
        AIMessage("Ticket 1 is open.", usage_metadata=usage, response_metadata=model),
    ]
    return create_agent(Scripted(messages=iter(said)), tools)
