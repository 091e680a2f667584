"""Results of agent-mark: trajectories with their tool calls and final answer. Refuses to know how they are scored."""

from collections.abc import Iterator

from harness.finite import finite
from harness.importing.form import Imported, ImportFormatError
from harness.jsontext import load_json
from harness.trace import Coverage, Event, Message, ToolCall, Trace
from proxy.spans import JSON

_OTHERS = frozenset({"messages", "events", "schema_version"})


def read_agentmark(text: str, stem: str, where: str) -> Iterator[Imported]:
    """The trajectories of a file: one, or a list of them; each alone or under `trajectory`, named by its `id`."""
    try:
        value: JSON = load_json(text)
    except ValueError as error:
        raise ImportFormatError(f"{where}: is no JSON: {error}") from error
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ImportFormatError(f"{where}: has no trajectory")
    for number, item in enumerate(items):
        told = item.get("trajectory", item) if isinstance(item, dict) else None
        if not isinstance(told, dict) or not isinstance(told.get("tool_calls"), list):
            raise ImportFormatError(f"{where}: [{number}]: a trajectory with tool_calls is expected")
        if not isinstance(told.get("prompt", told.get("final_response")), str) or told.keys() & _OTHERS:
            said = "a trajectory has a prompt and a final_response, and no messages and events"
            raise ImportFormatError(f"{where}: [{number}]: {said}")
        name = item.get("id") if isinstance(item, dict) else None
        plain = stem if len(items) == 1 else f"{stem}.{number + 1}"
        task = item.get("task") if isinstance(item, dict) else None
        yield Imported(
            name if isinstance(name, str) and name else plain,
            _trace(told, f"{where}: [{number}]"),
            task=task if isinstance(task, dict) else None,
        )


def _trace(told: dict[str, JSON], where: str) -> Trace:
    messages = [Message("user", told["prompt"], 1)] if isinstance(told.get("prompt"), str) else []
    calls: list[ToolCall] = []
    listed = told["tool_calls"]
    for place, item in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ImportFormatError(f"{where}.tool_calls[{place}]: a call with a name is expected")
        latency = item.get("latency_ms")
        calls.append(
            ToolCall(
                str(item["name"]),
                item.get("args"),
                seq=2 + 2 * place,
                result_seq=3 + 2 * place if "result" in item else None,
                result=item.get("result"),
                duration_ms=finite(latency),
                names=(str(item["name"]),),
            )
        )
    end = 2 + 2 * len(calls)
    events = [
        Event("model_call", {"in": told.get("input_tokens"), "out": told.get("output_tokens")}, end, reported=True)
    ]
    if isinstance(told.get("final_response"), str):
        messages.append(Message("assistant", told["final_response"], end + 1))
    coverage = Coverage("reported", "reported", "reported" if calls else "none", "reported")
    return Trace(coverage, tuple(messages), tuple(calls), tuple(events))
