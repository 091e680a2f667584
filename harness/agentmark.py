"""Task files of agent-mark, read as scenarios of ours.

Refuses to know how a scenario is read: a map goes in, and a map with our fields comes out.
"""

from collections.abc import Sequence

from harness.assertions.economy import efficiency
from harness.intake import Intake
from harness.scenariofile import AgentMarkEntry
from proxy.spans import JSON

FIELDS = frozenset(AgentMarkEntry.model_fields)


def is_task(data: JSON) -> bool:
    """Whether a file's map is a task file: it has a prompt, and no input."""
    return isinstance(data, dict) and "prompt" in data and "input" not in data


def as_scenario(intake: Intake, data: dict[str, JSON]) -> dict[str, JSON] | None:
    """The task with our fields: any of the expected tools is called, as often as said, and the rubric is judged.

    Title, category and assertions have defaults; what the file says itself stands, its assertions come first. None
    where the file is wrong.
    """
    task = intake.read(AgentMarkEntry, {key: value for key, value in data.items() if key in FIELDS}, ())
    if task is None:
        return None
    assertions: list[JSON] = []
    if task.expected_tools:
        tools: list[JSON] = [{"tool": tool, "ignore_case": True} for tool in task.expected_tools]
        assertions.append({"type": "tool_calls", "mode": "any_of", "expected": tools})
    if task.min_tool_calls is not None:
        assertions.append({"type": "efficiency", "minimum": task.min_tool_calls})
    if task.max_tool_calls is not None:
        assertions.append({"type": "max_tool_calls", "max": task.max_tool_calls})
    if task.success_rubric is not None:
        assertions.append({"type": "judged", "rubric": task.success_rubric})
    labels: dict[str, JSON] = {
        key: value for key, value in (("toolkit", task.toolkit), ("difficulty", task.difficulty)) if value is not None
    }
    ours = {key: value for key, value in data.items() if key not in FIELDS}
    own_labels, own_assertions = ours.get("labels", {}), ours.get("assertions", [])
    return {
        "title": task.prompt.strip().splitlines()[0][:200] if task.prompt.strip() else task.prompt,
        "category": "task",
        **ours,
        "input": {"user_message": task.prompt},
        "labels": {**labels, **own_labels} if isinstance(own_labels, dict) else own_labels,
        "assertions": [*own_assertions, *assertions] if isinstance(own_assertions, list) else own_assertions,
    }


def score(expected: Sequence[str], minimum: int, called: Sequence[str]) -> dict[str, float]:
    """Tool correctness and efficiency by agent-mark's own rules: any expected tool called, names in any case."""
    wanted = {name.casefold() for name in expected}
    correct = any(name.casefold() in wanted for name in called)
    return {"tool_correctness": float(correct), "efficiency": efficiency(minimum, len(called))}
