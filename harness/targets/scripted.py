"""A scripted agent: it follows the steps of its file, the same way whatever lies between it and the servers.

Refuses to know whether a server is a process: it is given an open client for each.
"""

import json
from collections.abc import Mapping, Sequence

from harness.references import Binding, StepReferenceError, bind_error, bind_result, resolve
from harness.steps import Call, Fetch, Goal, Say, Step
from harness.targets.client import Answer, Client, ClientError
from harness.targets.conversation import Conversation
from harness.targets.deadline import TimeUpError, TrialCancelledError
from harness.targets.ending import Ending
from proxy.spans import JSON

CUT = 300
"""Characters of an error text that a reason shows."""


class StepError(ValueError):
    """A step that did not come out as its file says it does."""


def follow(
    steps: Sequence[Step], clients: Mapping[str, Client], conversation: Conversation, most_calls: int | None
) -> Ending:
    """Open every connection, carry the steps out in order, and say how it ended. `clients` are by server id.

    Every server is asked for its tools first, as agents do, so that the record has what the agent was offered.
    A step that fails without `expect_error` is a crash of the agent; a server that cannot be talked to is our fault.
    """
    bindings: dict[str, Binding] = {}
    calls = 0
    try:
        for client in clients.values():
            client.initialize()
            client.list_tools()
        for place, step in enumerate(steps, start=1):
            match step:
                case Call():
                    if most_calls is not None and calls >= most_calls:
                        return Ending("limit", f"step {place} would be call {calls + 1}; limits.tool_calls is {calls}")
                    calls += 1
                    _call(place, step, clients[step.server], bindings, conversation)
                case Fetch():
                    _fetch(place, step, clients[step.server], bindings, conversation)
                case Say(text):
                    conversation.say(_as_text(resolve(text, bindings)))
                case Goal(goal):
                    conversation.report("goal", {"id": goal})
    except (StepError, StepReferenceError) as error:
        return Ending("agent_crash", str(error))
    except ClientError as error:
        return Ending("infra_error", str(error))
    except TimeUpError:
        return Ending("agent_timeout", "the agent did not end within limits.seconds")
    except TrialCancelledError as error:
        return Ending("cancelled", str(error))
    return Ending("completed")


def _call(place: int, step: Call, client: Client, bindings: dict[str, Binding], conversation: Conversation) -> None:
    called = f"step {place} (mcp/{step.server}/{step.tool})"
    answer = client.call_tool(step.tool, _resolved(called, step, bindings), step.give_up_after)
    _take(called, step, answer, bindings, conversation)


def _fetch(place: int, step: Fetch, client: Client, bindings: dict[str, Binding], conversation: Conversation) -> None:
    called = f"step {place} ({step.canonical})"
    arguments = _resolved(called, step, bindings)
    if step.kind == "resource":
        answer = client.read_resource(step.what)
    else:
        answer = client.get_prompt(step.what, {name: _as_text(value) for name, value in arguments.items()})
    _take(called, step, answer, bindings, conversation)


def _resolved(called: str, step: Call | Fetch, bindings: Mapping[str, Binding]) -> dict[str, JSON]:
    try:
        arguments = resolve(step.arguments, bindings)
    except StepReferenceError as error:
        raise StepError(f"{called}: {error}") from error
    assert isinstance(arguments, dict)
    return arguments


def _take(
    called: str, step: Call | Fetch, answer: Answer, bindings: dict[str, Binding], conversation: Conversation
) -> None:
    if answer.failed and not step.expect_error:
        said = conversation.hiding.text(answer.text)[:CUT]
        raise StepError(f"{called} failed, and its file does not say expect_error: {said}")
    if step.name is not None:
        result = answer.result
        bindings[step.name] = bind_error(answer.text) if result is None else bind_result(result)


def _as_text(said: object) -> str:
    return said if isinstance(said, str) else json.dumps(said)
