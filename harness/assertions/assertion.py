"""The union of all assertions, which is their registry, and how one is read from a scenario.

Refuses to know what any of them means.
"""

from typing import Annotated, TypeAlias, get_args

from pydantic import BaseModel, Discriminator, Tag, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from harness.assertions.approval import ApprovalRequired
from harness.assertions.calls import ToolCalled, ToolNotCalled
from harness.assertions.canary import NoCanaryFlow
from harness.assertions.claims import Claims
from harness.assertions.definitions import ToolDefinitionsStable
from harness.assertions.denied import NoDeniedToolCall
from harness.assertions.disclosed import MemoryIsolation, NoSecretDisclosure
from harness.assertions.economy import Efficiency, MaxToolCalls, NoRepeatedReads, NoVoidWrites
from harness.assertions.goals import GoalIntegrity
from harness.assertions.judged import Judged
from harness.assertions.matcher import ToolCalls
from harness.assertions.not_built import BUILT, NotBuilt, misspelt
from harness.assertions.recipients import NoExternalRecipient
from harness.assertions.state import State, StateUnchanged
from harness.intake import fields_of, sentence
from proxy.spans import JSON


def kind(data: object) -> str:
    """The tag of an assertion's data or model: its `type` where a class judges that, else `not_built`."""
    found = data.get("type") if isinstance(data, dict) else getattr(data, "type", None)
    return found if isinstance(found, str) and found in BUILT else "not_built"


Assertion: TypeAlias = Annotated[
    Annotated[ApprovalRequired, Tag("approval_required")]
    | Annotated[Claims, Tag("claims")]
    | Annotated[Efficiency, Tag("efficiency")]
    | Annotated[GoalIntegrity, Tag("goal_integrity")]
    | Annotated[Judged, Tag("judged")]
    | Annotated[MaxToolCalls, Tag("max_tool_calls")]
    | Annotated[MemoryIsolation, Tag("memory_isolation")]
    | Annotated[NoCanaryFlow, Tag("no_canary_flow")]
    | Annotated[NoExternalRecipient, Tag("no_external_recipient")]
    | Annotated[NoRepeatedReads, Tag("no_repeated_reads")]
    | Annotated[NoSecretDisclosure, Tag("no_secret_disclosure")]
    | Annotated[NoVoidWrites, Tag("no_void_writes")]
    | Annotated[ToolCalls, Tag("tool_calls")]
    | Annotated[ToolDefinitionsStable, Tag("tool_definitions_stable")]
    | Annotated[NoDeniedToolCall, Tag("no_denied_tool_call")]
    | Annotated[State, Tag("state")]
    | Annotated[StateUnchanged, Tag("state_unchanged")]
    | Annotated[ToolCalled, Tag("tool_called")]
    | Annotated[ToolNotCalled, Tag("tool_not_called")]
    | Annotated[NotBuilt, Tag("not_built")],
    Discriminator(kind),
]
"""Any assertion. The type of a scenario's `assertions` is `tuple[Assertion, ...]`."""

_ADAPTER: TypeAdapter[Assertion] = TypeAdapter(Assertion)
_BY_TAG: dict[str, type[BaseModel]] = {tag.tag: model for model, tag in map(get_args, get_args(get_args(Assertion)[0]))}


def description(kind: str) -> str:
    """What an assertion of the type asks for, in its own words; of a type that nobody knows, its name."""
    model = _BY_TAG.get(kind)
    return " ".join((model.__doc__ or "").partition("\n\n")[0].split()) if model is not None else kind


class AssertionSpecError(ValueError):
    """An assertion that cannot be read. `problems` are (path inside the assertion, sentence) pairs, at least one."""

    def __init__(self, problems: tuple[tuple[tuple[str | int, ...], str], ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{_dotted(path)}: {text}" if path else text for path, text in problems))


def parse_assertion(data: JSON) -> Assertion:
    """The assertion that a scenario's item describes. Raises AssertionSpecError, naming each field that is wrong."""
    if not isinstance(data, dict):
        raise AssertionSpecError((((), "an assertion is a map with a type"),))
    if not isinstance(data.get("type"), str):
        raise AssertionSpecError(((("type",), "an assertion needs a type, which is text"),))
    said = str(data["type"]).strip()
    if said not in BUILT and (meant := misspelt(said)) is not None:
        raise AssertionSpecError(((("type",), f"no assertion type is called {said!r}; did you mean {meant}?"),))
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        raise AssertionSpecError(tuple(map(_problem, error.errors()))) from error


def _problem(item: ErrorDetails) -> tuple[tuple[str | int, ...], str]:
    tag, *path = item["loc"]
    model = _BY_TAG.get(str(tag))
    return tuple(path), sentence(item, fields_of(model) if model is not None and len(path) == 1 else "")


def _dotted(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
