"""Schemas of the files that people write: scenarios, agent files and policies.

Refuses to know what no schema can say: which servers, tools and files there are.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue, TypeAdapter, create_model

from harness.agentfile import CommandEntry, StepsEntry
from harness.assertions.assertion import Assertion
from harness.assertions.not_built import BUILT
from harness.intake import Entry
from harness.modelagent import ModelAgentEntry
from harness.scenariofile import AgentEntry, PolicyFileEntry, ScenarioEntry, ServerEntry, Trust
from harness.steps import StepEntry
from harness.targetfile import TargetAgentEntry
from proxy.faults import LONGEST, SAID
from proxy.faults import Kind as FaultKind
from proxy.policy import CLIENT_REQUESTS, Form, Verdict
from proxy.spans import JSON

Object: TypeAlias = "dict[str, JSON]"
_AGENT: TypeAdapter[StepsEntry | CommandEntry | ModelAgentEntry | TargetAgentEntry] = TypeAdapter(
    StepsEntry | CommandEntry | ModelAgentEntry | TargetAgentEntry
)
_Glob: TypeAlias = Annotated[str, Field(pattern=r"^mcp/[^/]+/[\s\S]")]
_Duration: TypeAlias = Annotated[str, Field(pattern=r"^0*[1-9][0-9]{0,8}(ms|s|m|h)$")]


class RuleEntry(Entry):
    """One rule of a policy: one of allow, deny and approve. `arguments` is a JSON Schema of the call's arguments."""

    allow: _Glob = ""
    deny: _Glob = ""
    approve: _Glob = ""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    trust: Annotated[list[Trust], Field(min_length=1)] = Field(default_factory=list)
    reason: str = ""
    form: Form = Field(default="tool_error", alias="as")
    wait: _Duration = ""
    grant_lasts: _Duration = ""


class PolicyEntry(Entry):
    """A policy, as `proxy.policy` reads it: rules in order, the first that holds decides."""

    mode: Literal["enforce", "observe"] = "enforce"
    default: Verdict = "allow"
    rules: list[RuleEntry] = Field(default_factory=list)
    client_requests: dict[str, Verdict] = Field(default_factory=dict)


class FaultEntry(Entry):
    """One of `faults`, as `proxy.faults` reads it: exactly one of call and probability."""

    tool: str = Field(min_length=1)
    fault: FaultKind
    call: int = Field(default=1, ge=1)
    probability: float = Field(default=0, ge=0, le=1)
    seed: int | str = ""
    message: str = Field(default=SAID, min_length=1)
    form: Literal["tool_error", "error"] = Field(default="tool_error", alias="as")
    seconds: float = Field(default=0, ge=0, le=LONGEST)
    keep: int = Field(default=0, ge=0)


def scenario_schema() -> Object:
    """The schema of a scenario file, but for the task files of agent-mark, which are read as scenarios too."""
    whole = create_model(
        "Scenario",
        __base__=ScenarioEntry,
        servers=(dict[str, ServerEntry], Field(default_factory=dict)),
        policy=(PolicyEntry | PolicyFileEntry, Field(default_factory=PolicyEntry)),
        faults=(list[FaultEntry], Field(default_factory=list)),
        agent=(AgentEntry | ModelAgentEntry | TargetAgentEntry | None, None),
        assertions=(list[Assertion], Field(min_length=1)),
        reference=(list[StepEntry], Field(default_factory=list)),
    )
    schema = whole.model_json_schema()
    schema["properties"]["id"]["pattern"] = r"^(?!\.+$)[A-Za-z0-9._-]+$"
    schema["properties"]["servers"]["propertyNames"] = {"pattern": r"^(?!\.+$)[A-Za-z0-9._-]+$"}
    schema["$defs"]["ServerEntry"]["oneOf"] = [_given(name) for name in ("fixture", "command", "url")]
    schema["$defs"]["AgentEntry"]["oneOf"] = [_given("scripted"), {"anyOf": _program()}]
    schema["$defs"]["FaultEntry"]["oneOf"] = [_given("call"), {"required": ["probability", "seed"]}]
    # An assertion of a type that we know is held to that type's fields.
    schema["$defs"]["NotBuilt"]["properties"]["type"] = {"type": "string", "not": {"enum": sorted(BUILT)}}
    _policies(schema["$defs"]["PolicyEntry"], schema["$defs"]["RuleEntry"])
    return schema


def agent_schema() -> Object:
    """The schema of an agent file: steps, a program, a model, or a target of another kind."""
    schema = _AGENT.json_schema()
    schema["$defs"]["CommandEntry"]["anyOf"] = _program()
    return schema


def policy_schema() -> Object:
    """The schema of a policy file."""
    schema = PolicyEntry.model_json_schema()
    _policies(schema, schema["$defs"]["RuleEntry"])
    return schema


def _policies(policy: Object, rule: Object) -> None:
    rule["oneOf"] = [{"required": [action]} for action in ("allow", "deny", "approve")]
    no_form: Object = {"if": {"required": ["allow"]}, "then": {"properties": {"as": False}}}
    hidden: Object = {"properties": {"as": {"const": "hidden"}}, "required": ["as"]}
    no_arguments: Object = {"if": hidden, "then": {"properties": {"arguments": False, "approve": False}}}
    rule["allOf"] = [no_form, no_arguments]
    rule["dependentRequired"] = {"wait": ["approve"], "grant_lasts": ["approve"]}
    fields = rule["properties"]
    assert isinstance(fields, dict)
    for name in ("allow", "deny", "approve", "wait", "grant_lasts"):
        field = fields[name]
        assert isinstance(field, dict)
        # Empty stands for absent in the model alone.
        field.pop("default")
    properties = policy["properties"]
    assert isinstance(properties, dict)
    requests = properties["client_requests"]
    assert isinstance(requests, dict)
    requests["propertyNames"] = {"enum": [*CLIENT_REQUESTS.values()]}


def _program() -> list[JSON]:
    return [_given("command"), _given("profile")]


def _given(name: str) -> Object:
    """Says that this stands in the object, and is not null."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
