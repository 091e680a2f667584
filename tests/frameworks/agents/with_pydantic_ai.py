"""An agent of Pydantic AI with a function for its model, which asks for one tool and then answers."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def answer(messages, _):
    if len(messages) > 1:
        return ModelResponse([TextPart("Ticket 1 is open.")])
    return ModelResponse([ToolCallPart("get_ticket", {"ticket_id": 1})])


def build(toolsets):
    return Agent(FunctionModel(answer, model_name="gpt-4.1"), toolsets=toolsets)
