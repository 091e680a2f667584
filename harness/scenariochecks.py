"""What the parts of a scenario must have to do with each other.

Refuses to open files.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel

from harness.assertions.assertion import Assertion
from harness.assertions.canary import NoCanaryFlow
from harness.assertions.claims import Claims
from harness.assertions.definitions import ToolDefinitionsStable
from harness.assertions.state import State, StateUnchanged
from harness.intake import Intake
from harness.namedtools import tools_named
from harness.scenariofile import ExpectedEntry, InputEntry, ScenarioEntry, TargetEntry
from harness.steps import split_tool
from proxy.problem import Path, describe
from proxy.spans import JSON

OPEN: Mapping[str, type[BaseModel]] = {"input": InputEntry, "expected": ExpectedEntry, "target": TargetEntry}
"""Maps of a scenario that may have any key, and the keys of ours."""


def check_servers(
    intake: Intake, entry: ScenarioEntry | None, assertions: Mapping[int, Assertion], servers: Collection[str]
) -> None:
    """Note where assertions (by their place in the list) and facts name a server that is not one of `servers`."""
    for path, server in (*_named_by_assertions(assertions), *_named_by_facts(entry)):
        if server not in servers:
            there = ", ".join(servers) or "none"
            intake.wrong(path, f"the scenario has no server {server!r}; its servers are: {there}")


def check_ids(intake: Intake, assertions: Mapping[int, Assertion]) -> None:
    """Note each assertion whose `id` another finding has, by its own id or by its type (`TYPE`, `TYPE#2`, …)."""
    counts: Counter[str] = Counter(assertion.type for assertion in assertions.values() if assertion.id is None)
    taken = {"state_unexplained"}
    for kind, count in counts.items():
        taken |= {kind, *(f"{kind}#{number}" for number in range(2, count + 1))}
    for place, assertion in assertions.items():
        if assertion.id is not None and assertion.id in taken:
            intake.wrong(("assertions", place, "id"), f"another finding is called {assertion.id!r} already")
        taken |= {assertion.id} if assertion.id is not None else set()


def check_fields(intake: Intake, entry: ScenarioEntry, types: Collection[str]) -> None:
    """Note what is missing or void, given the types of the assertions."""
    if entry.severity is None and entry.category != "task":
        intake.wrong(("severity",), "this field is missing; it may be absent for category task only")
    if "memory_isolation" in types:
        _check_markers(intake, entry)
    if "no_secret_disclosure" in types:
        _check_secrets(intake, entry)


def note_slips(intake: Intake, data: Mapping[str, JSON]) -> None:
    """Note each key of an open map that nobody reads and that is nearly one that somebody does."""
    for field, model in OPEN.items():
        given = data.get(field)
        known = list(model.model_fields)
        for key in given if isinstance(given, dict) else ():
            near = get_close_matches(key, known, n=1, cutoff=0.75)
            if key not in known and near:
                intake.note((field, key), f"nobody reads this field; did you mean {near[0]}?")


def _check_markers(intake: Intake, entry: ScenarioEntry) -> None:
    path: Path = ("expected", "memory_isolation", "forbidden_markers")
    isolation = entry.expected.memory_isolation
    markers = (isolation.forbidden_markers if isolation is not None else None) or []
    if not markers:
        intake.wrong(path, "the assertion memory_isolation needs at least one marker here")
    for place, marker in enumerate(markers):
        if not marker.strip():
            intake.wrong((*path, place), "a marker may not be blank")
        elif _fold(marker) in _fold(entry.input.user_message):
            intake.wrong((*path, place), "input.user_message contains this marker, so that it says nothing")


def _check_secrets(intake: Intake, entry: ScenarioEntry) -> None:
    for place, secret in enumerate(entry.expected.secrets or []):
        path: Path = ("expected", "secrets", place)
        if (secret.value is not None) + (secret.env is not None) + (secret.pattern is not None) != 1:
            intake.wrong(path, "a secret has exactly one of value, env and pattern")
        elif secret.pattern is not None and (flaw := _flaw(secret.pattern)) is not None:
            intake.wrong((*path, "pattern"), flaw)
        elif secret.value is not None and _fold(secret.value) in _fold(entry.input.user_message):
            intake.wrong((*path, "value"), "input.user_message contains this secret, so that it says nothing")


def _flaw(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"{describe(pattern)} is not a regular expression: {error}"
    return None


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _named_by_assertions(assertions: Mapping[int, Assertion]) -> Iterator[tuple[Path, str]]:
    for place, assertion in assertions.items():
        path: Path = ("assertions", place)
        for inner, name, _ in tools_named(assertion):
            tool = split_tool(name)
            if tool is not None:
                yield (*path, *inner), tool[0]
        match assertion:
            case State():
                yield (*path, "server"), assertion.server
            case StateUnchanged():
                for index, server in enumerate(assertion.servers or []):
                    yield (*path, "servers", index), server
                for index, exemption in enumerate(assertion.except_):
                    yield (*path, "except", index, "server"), exemption.server
            case ToolDefinitionsStable():
                for index, server in enumerate(assertion.servers or []):
                    yield (*path, "servers", index), server
            case NoCanaryFlow():
                for index, flow in enumerate(assertion.allow):
                    yield (*path, "allow", index, "from"), flow.from_
                    yield (*path, "allow", index, "to"), flow.to
            case Claims():
                for index, claim in enumerate(assertion.claims):
                    if claim.then.server is not None:
                        yield (*path, "claims", index, "then", "server"), claim.then.server
            case _:
                pass


def _named_by_facts(entry: ScenarioEntry | None) -> Iterator[tuple[Path, str]]:
    for place, fact in enumerate(entry.facts if entry is not None else []):
        yield ("facts", place, "known", "server"), fact.known.server
        if fact.before is not None:
            yield ("facts", place, "before", "server"), fact.before.server
