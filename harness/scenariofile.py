"""The fields of a scenario file, as written (verdicts.md section 1).

Refuses to know what they lead to: no file is opened here, and nothing is joined.
"""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, field_validator

from harness.intake import Entry
from harness.targets.profiles.known import ProfileName
from proxy.httpwords import read_origin
from proxy.problem import describe

Category: TypeAlias = Literal[
    "goal_hijack",
    "prompt_injection",
    "context_injection",
    "unsafe_tool_execution",
    "unauthorized_outbound_action",
    "sensitive_data_disclosure",
    "privilege_escalation",
    "memory_isolation",
    "approval_bypass",
    "mcp_trust_boundary",
    "task",
]
Severity: TypeAlias = Literal["low", "medium", "high", "critical"]
Trust: TypeAlias = Literal["trusted", "internal", "third_party", "untrusted"]
OpenMap: TypeAlias = dict[str, JsonValue]
Name: TypeAlias = Annotated[str, Field(min_length=1)]
MOST_TRIALS = 10_000
"""Trials of one scenario in one run: each has a folder, and a line in the report."""
LONGEST_TRIAL = 7 * 24 * 3600
"""Seconds; past some weeks the system cannot wait."""


def without_nul(text: str) -> str:
    """The text, which a system call takes. Raises ValueError for one with U+0000 in it."""
    if "\0" in text:
        raise ValueError("U+0000 may not stand in a command or a variable")
    return text


def _variable_name(text: str) -> str:
    if not text or "=" in text:
        raise ValueError(f"{text!r} is no name of a variable: it may be neither empty nor have a '='")
    return without_nul(text)


Word: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(without_nul)]
VariableName: TypeAlias = Annotated[str, AfterValidator(_variable_name)]
VariableValue: TypeAlias = Annotated[str, AfterValidator(without_nul)]


def _steps(text: str) -> str:
    if re.fullmatch(r"\$(\.[^.\[\]]+|\[[0-9]{1,9}\])*", text) is None:
        raise ValueError(f"expected a path such as $.customer.tags[0], not {describe(text)}")
    return text


def _address(text: str) -> str:
    read_origin(text)
    return text


class ServerEntry(Entry):
    """One of `servers`: exactly one of fixture, command and url."""

    fixture: Name | None = None
    seed: Name | None = None
    command: Annotated[list[Word], Field(min_length=1)] | None = None
    env: dict[VariableName, VariableValue] | None = None
    url: Annotated[str, AfterValidator(_address)] | None = None
    trust: Trust = "third_party"


class LimitsEntry(Entry):
    """`limits`: where a trial is ended. Tokens and cost count only where they are observed."""

    seconds: float = Field(default=60, gt=0, le=LONGEST_TRIAL)
    tool_calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0)


class AgentEntry(Entry):
    """`agent`: scripted, or command, profile or both."""

    scripted: Name | None = None
    command: Annotated[list[Word], Field(min_length=1)] | None = None
    profile: ProfileName | None = None


class PolicyFileEntry(Entry):
    """`policy: {file: …}`."""

    file: Name


class ContextEntry(Entry):
    """One of `input.context`; fields of its own are kept."""

    model_config = ConfigDict(extra="allow")

    source: str
    trust: str
    content: str | None = None


class InputEntry(Entry):
    """`input`, an open map."""

    model_config = ConfigDict(extra="allow")

    user_message: str = ""
    context: list[ContextEntry] | None = None


class MemoryEntry(Entry):
    """`expected.memory_isolation`, an open map."""

    model_config = ConfigDict(extra="allow")

    forbidden_markers: list[str] | None = None


class SecretEntry(Entry):
    """One of `expected.secrets`: exactly one of value, env and pattern."""

    name: Name
    value: Name | None = None
    env: Name | None = None
    pattern: Name | None = None
    allowed_to: list[str] = Field(default_factory=list)


class ExpectedEntry(Entry):
    """`expected`, an open map; null is as absent."""

    model_config = ConfigDict(extra="allow")

    denied_tools: list[str] | None = None
    allowed_tools: list[str] | None = None
    allowed_recipients: list[str] | None = None
    allowed_domains: list[str] | None = None
    outbound_tools: list[str] | None = None
    memory_isolation: MemoryEntry | None = None
    secrets: list[SecretEntry] | None = None

    @field_validator("denied_tools", "allowed_tools")
    @classmethod
    def _none_blank(cls, names: list[str] | None) -> list[str] | None:
        if not all(name.strip() for name in names or []):
            raise ValueError("a tool's name may not be blank")
        return names


class TargetEntry(Entry):
    """`target`, an open map."""

    model_config = ConfigDict(extra="allow")

    adapter: Name = "mcp"


class KnownEntry(Entry):
    """`known` of a fact: the call whose result holds the value at `path`."""

    server: Name
    tool: Name
    arguments: OpenMap = Field(default_factory=dict)
    path: Annotated[str, AfterValidator(_steps)]


class BeforeEntry(Entry):
    """`before` of a fact: the call that ought to be decided by it."""

    server: Name
    tool: Name


class FactEntry(Entry):
    """One of `facts` (verdicts.md section 6)."""

    id: Name
    value: JsonValue
    known: KnownEntry
    stated_as: list[Name] = Field(default_factory=list)
    asked_as: list[Name] = Field(default_factory=list)
    before: BeforeEntry | None = None


class ScenarioEntry(Entry):
    """A scenario file. Each of servers, policy, faults, agent, assertions and reference is read by itself."""

    id: str = Field(max_length=200)
    title: Name
    category: Category
    severity: Severity | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    target: TargetEntry = Field(default_factory=TargetEntry)
    input: InputEntry
    servers: JsonValue = None
    policy: JsonValue = None
    grants: JsonValue = None
    agent: JsonValue = None
    trials: int = Field(default=1, ge=1, le=MOST_TRIALS)
    limits: LimitsEntry = Field(default_factory=LimitsEntry)
    facts: list[FactEntry] = Field(default_factory=list)
    faults: JsonValue = None
    expected: ExpectedEntry = Field(default_factory=ExpectedEntry)
    assertions: Annotated[list[JsonValue], Field(min_length=1)]
    reference: list[JsonValue] = Field(default_factory=list)

    @field_validator("id")
    @classmethod
    def _names_a_folder(cls, text: str) -> str:
        if re.fullmatch(r"[A-Za-z0-9._-]+", text) is None:
            raise ValueError(f"an id is made of letters, digits, '.', '_' and '-', and {text[:40]!r} is not")
        if not text.strip("."):
            raise ValueError("an id also names a folder, so it may not be dots alone")
        return text


class AgentMarkEntry(Entry):
    """The fields that agent-mark's task files have beside ours."""

    prompt: Name
    toolkit: str | None = None
    difficulty: str | None = None
    expected_tools: list[Name] = Field(default_factory=list)
    min_tool_calls: int | None = Field(default=None, ge=0)
    max_tool_calls: int | None = Field(default=None, ge=0)
    success_rubric: Name | None = None
