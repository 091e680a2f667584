"""The script of a scripted model: rules, of which the first that fits answers.

Refuses to know how a rule is applied.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field, JsonValue

from harness.intake import Entry, Intake, open_document
from proxy.problem import Problem
from proxy.spans import JSON

WORD = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)?")
Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class When:
    """What must hold for a rule to fit; what is empty is not asked."""

    agent: tuple[str, ...] = ()
    offered: str | None = None
    called: str | None = None
    not_called: str | None = None
    said: str | None = None
    not_said: str | None = None
    knows: Mapping[str, Scalar] = field(default_factory=dict)
    not_known: tuple[str, ...] = ()
    chance: float = 1.0


@dataclass(frozen=True, slots=True)
class Fail:
    """The call fails, as a provider's would: HTTP `status`, to be tried again after so many seconds."""

    status: int
    message: str = "scripted failure"
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens that the answer is said to have taken."""

    input: int
    output: int
    cached: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; exactly one of `call`, `say` and `fail` is there. docs/agents-model.md says what each field does."""

    when: When
    call: str | None
    say: str | None
    fail: Fail | None
    arguments: dict[str, JSON]
    fill: bool
    drop: tuple[str, ...]
    times: int
    at_most: int | None
    usage: Counts | None
    goal: str | None


@dataclass(frozen=True, slots=True)
class Script:
    """`path` is the file."""

    path: Path
    rules: tuple[Rule, ...]


class WhenEntry(Entry):
    """`when` of a rule."""

    agent: str | list[str] | None = None
    offered: str | None = None
    called: str | None = None
    not_called: str | None = None
    said: str | None = None
    not_said: str | None = None
    knows: dict[str, JsonValue] = Field(default_factory=dict)
    not_known: list[str] = Field(default_factory=list)
    chance: float = Field(default=1.0, ge=0, le=1)


class FailEntry(Entry):
    """`fail` of a rule."""

    status: int = Field(ge=400, le=599)
    message: str = "scripted failure"
    retry_after: float | None = Field(default=None, ge=0)


class UsageEntry(Entry):
    """`usage` of a rule."""

    input: int = Field(default=0, ge=0, alias="in")
    output: int = Field(default=0, ge=0, alias="out")
    cached: int = Field(default=0, ge=0)


class RuleEntry(Entry):
    """One rule."""

    when: WhenEntry = Field(default_factory=WhenEntry)
    call: str | None = None
    say: str | None = None
    fail: FailEntry | None = None
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    fill: bool = False
    drop: list[str] = Field(default_factory=list)
    times: int = Field(default=1, ge=1, le=100)
    at_most: int | None = Field(default=None, ge=1)
    usage: UsageEntry | None = None
    goal: str | None = Field(default=None, min_length=1)


class ScriptEntry(Entry):
    """A script file."""

    script: Annotated[list[JsonValue], Field(min_length=1)]


def read_script(path: Path, problems: list[Problem]) -> Script | None:
    """The script of a file, None where it cannot be used; what is wrong is added to `problems`."""
    document = open_document(path, problems)
    if document is None:
        return None
    intake = Intake(document)
    entry = intake.read(ScriptEntry, document.data, ())
    rules = [] if entry is None else [_rule(intake, data, place) for place, data in enumerate(entry.script)]
    problems.extend(intake.problems)
    return None if intake.problems else Script(path, tuple(rule for rule in rules if rule is not None))


def _rule(intake: Intake, data: JSON, place: int) -> Rule | None:
    path = ("script", place)
    entry = intake.read(RuleEntry, data, path)
    if entry is None:
        return None
    if sum(part is not None for part in (entry.call, entry.say, entry.fail)) != 1:
        intake.wrong(path, "a rule has exactly one of call, say and fail")
    if entry.call is None and (entry.arguments or entry.fill or entry.times > 1):
        intake.wrong(path, "arguments, fill and times belong to call")
    for name in ("said", "not_said"):
        try:
            re.compile(getattr(entry.when, name) or "")
        except re.error as error:
            intake.wrong((*path, "when", name), f"is no regular expression: {error}")
    for word in _words([entry.arguments, entry.say]):
        if _NAME.fullmatch(word) is None:
            intake.wrong(path, f"${{{word}}} is no name; write ${{everything}}, ${{KEY}} or ${{TOOL.KEY}}")
    when = entry.when
    knows: dict[str, Scalar] = {}
    for key, value in when.knows.items():
        if isinstance(value, dict | list):
            intake.wrong((*path, "when", "knows", key), "expected a text, a number, true, false or null")
        else:
            knows[key] = value
    return Rule(
        when=When(
            agent=(when.agent,) if isinstance(when.agent, str) else tuple(when.agent or ()),
            offered=when.offered,
            called=when.called,
            not_called=when.not_called,
            said=when.said,
            not_said=when.not_said,
            knows=knows,
            not_known=tuple(when.not_known),
            chance=when.chance,
        ),
        call=entry.call,
        say=entry.say,
        fail=None if entry.fail is None else Fail(entry.fail.status, entry.fail.message, entry.fail.retry_after),
        arguments=dict(entry.arguments),
        fill=entry.fill,
        drop=tuple(entry.drop),
        times=entry.times,
        at_most=entry.at_most,
        usage=None if entry.usage is None else Counts(entry.usage.input, entry.usage.output, entry.usage.cached),
        goal=entry.goal,
    )


def _words(value: JSON) -> list[str]:
    match value:
        case str():
            return WORD.findall(value)
        case list():
            return [word for item in value for word in _words(item)]
        case dict():
            return [word for item in value.values() for word in _words(item)]
        case _:
            return []
