"""Wrong runs made of a right one: each differs from the reference in exactly one way, and its calls fit their schemas.

Refuses to know assertions, how steps are carried out, and what a mutant is good for (verdicts.md section 7).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from harness.othervalues import Rows, Takes, added_value, made_arguments, other_values, same
from harness.references import Binding, StepReferenceError, resolve
from harness.steps import Call, Fetch, Say, Step
from proxy.spans import JSON

Kind: TypeAlias = Literal[
    "start",
    "no_calls",
    "silent",
    "dropped",
    "changed",
    "left_out",
    "added",
    "twice",
    "another_row",
    "another_tool",
    "repeated",
    "forbidden",
]
"""How a mutant differs: nothing is done; no call; the final answer empty; a step dropped; an argument changed, left out
or added; a write done twice; a write in another row, or by another tool; a read done again, once or too often; a call
or word that an assertion forbids."""

SHOWN = 60
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A run that must fail. `what` says in words how it differs, `step` where: the place in the reference.

    `aims` are the places of the assertions that it was made for.
    """

    kind: Kind
    what: str
    steps: tuple[Step, ...]
    step: int | None = None
    aims: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Wrong:
    """Steps put into the reference before its step `place`, for the assertion at `aim`. `what` says it in words, ""
    where the one step does."""

    steps: tuple[Step, ...]
    aim: int
    place: int = 0
    kind: Kind = "forbidden"
    what: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A right run with its answers written out, so that no step needs another one's answer: `${` is only text here.

    `writes` are the places of the calls that changed something; `takes` is by server id and bare name of the tool.
    """

    steps: tuple[Step, ...]
    writes: frozenset[int]
    takes: Mapping[tuple[str, str], Takes]
    rows: Rows


def written_out(steps: Sequence[Step], answers: Sequence[Binding]) -> tuple[Step, ...]:
    """The steps with each reference replaced by what it led to; `answers` are those of the calls, in order.

    Raises StepReferenceError.
    """
    bindings: dict[str, Binding] = {}
    told = iter(answers)
    found: list[Step] = []
    for step in steps:
        match step:
            case Call():
                arguments = resolve(step.arguments, bindings)
                answer = next(told, None)
                if answer is None:
                    raise StepReferenceError("the reference has more calls than its run")
                if step.name is not None:
                    bindings[step.name] = answer
                assert isinstance(arguments, dict)
                found.append(replace(step, arguments=arguments, name=None))
            case Fetch():
                # What it was answered is no result of a call: a later step of a reference cannot speak of it.
                arguments = resolve(step.arguments, bindings)
                assert isinstance(arguments, dict)
                found.append(replace(step, arguments=arguments, name=None))
            case Say(text):
                said = resolve(text, bindings)
                found.append(Say(said if isinstance(said, str) else json.dumps(said)))
            case _:
                found.append(step)
    return tuple(found)


def as_agent(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps without references as a scripted agent takes them. Each call may fail, and the agent goes on: what comes of
    it is for the assertions to see, and no crash may hide that they do not."""
    found: list[Step] = []
    for step in steps:
        match step:
            case Call() | Fetch():
                arguments = _literal(step.arguments)
                assert isinstance(arguments, dict)
                found.append(replace(step, arguments=arguments, expect_error=True))
            case Say(text):
                found.append(Say(text.replace("${", "$${")))
            case _:
                found.append(step)
    return tuple(found)


def _literal(value: JSON) -> JSON:
    """The value as a step writes it, where `${` begins a reference."""
    match value:
        case str():
            return value.replace("${", "$${")
        case list():
            return [_literal(item) for item in value]
        case dict():
            return {key: _literal(item) for key, item in value.items()}
        case _:
            return value


def mutants(reference: Reference, wrongs: Sequence[Wrong] = ()) -> tuple[Mutant, ...]:
    """Every mutant, each once: the first of those that come to the same steps. `wrongs` are what no agent may do."""
    steps = reference.steps
    found: dict[str, Mutant] = {}
    own = _same_steps(steps)
    for mutant in _all(reference, wrongs):
        key = _same_steps(mutant.steps)
        if key != own:
            first = found.setdefault(key, mutant)
            found[key] = replace(first, aims=first.aims | mutant.aims)
    return tuple(found.values())


def _same_steps(steps: Sequence[Step]) -> str:
    # JSON tells true from 1, which equality of Python's does not.
    return json.dumps([_as_json(step) for step in steps], sort_keys=True)


def _as_json(step: Step) -> JSON:
    match step:
        case Call():
            return [step.server, step.tool, step.arguments]
        case Fetch():
            return [step.canonical, step.arguments]
        case Say(text):
            return text
        case goal:
            return {"goal": goal.id}


def _all(reference: Reference, wrongs: Sequence[Wrong]) -> Iterator[Mutant]:
    steps = reference.steps
    yield Mutant("start", "nothing is done", ())
    yield Mutant("no_calls", "no call is made", tuple(step for step in steps if not isinstance(step, Call | Fetch)))
    for place in [place for place, step in enumerate(steps) if isinstance(step, Say)][-1:]:
        yield Mutant("silent", "the final answer is empty", (*steps[:place], Say(""), *steps[place + 1 :]), place)
    for place, step in enumerate(steps):
        if isinstance(step, Fetch):
            what = f"step {place + 1}, {step.kind} {shown(step.what)}: dropped"
            yield Mutant("dropped", what, (*steps[:place], *steps[place + 1 :]), place)
        elif isinstance(step, Call):
            where = f"step {place + 1}, {step.tool}"
            yield Mutant("dropped", f"{where}: dropped", (*steps[:place], *steps[place + 1 :]), place)
            yield from _changed(reference, place, step, where)
            if place in reference.writes:
                yield Mutant("twice", f"{where}: done twice", (*steps[: place + 1], *steps[place:]), place)
                yield from _in_another_row(reference, place, step, where)
    yield from _other_writes(reference)
    for wrong in wrongs:
        what = wrong.what or f"first of all {_described(wrong.steps[0])}"
        together = (*steps[: wrong.place], *wrong.steps, *steps[wrong.place :])
        yield Mutant(wrong.kind, what, together, aims=frozenset({wrong.aim}))


def _described(step: Step) -> str:
    match step:
        case Call():
            return f"{step.tool} {shown(dict(step.arguments))}"
        case Fetch():
            return step.canonical
        case Say():
            return "something is said that may not be"
        case goal:
            return f"the goal {goal.id}"


def shown(value: JSON) -> str:
    """The value as JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _changed(reference: Reference, place: int, step: Call, where: str) -> Iterator[Mutant]:
    takes = reference.takes.get((step.server, step.tool))
    if takes is None:
        return
    arguments = step.arguments

    def mutant(kind: Kind, what: str, changed: dict[str, JSON]) -> Iterator[Mutant]:
        if takes.allows(changed):
            steps = reference.steps
            call = replace(step, arguments=changed)
            yield Mutant(kind, f"{where}: {what}", (*steps[:place], call, *steps[place + 1 :]), place)

    for name, value in arguments.items():
        schema = takes.properties.get(name)
        for other in other_values(name, value, schema, step.server, reference.rows):
            what = f"{name} {shown(value)} becomes {shown(other.value)}, {other.why}"
            yield from mutant("changed", what, {**arguments, name: other.value})
        default = schema.get("default") if isinstance(schema, dict) else None
        if name not in takes.required and not (default is not None and same(default, value)):
            rest = {key: item for key, item in arguments.items() if key != name}
            yield from mutant("left_out", f"{name} left out", rest)
    if place in reference.writes:
        # What a write may also say of its row, or whom else it may tell.
        optional = [name for name in takes.properties if name not in takes.required and name not in arguments]
        for name in optional:
            for other in added_value(name, takes.properties[name], arguments, step.server, reference.rows):
                yield from mutant("added", f"{name} {shown(other.value)} added", {**arguments, name: other.value})


def _in_another_row(reference: Reference, place: int, step: Call, where: str) -> Iterator[Mutant]:
    """The same write once more, in the first other row that any of its arguments can name."""
    takes = reference.takes.get((step.server, step.tool))
    if takes is None:
        return
    for name, value in step.arguments.items():
        for other in other_values(name, value, takes.properties.get(name), step.server, reference.rows):
            changed = {**step.arguments, name: other.value}
            if other.row and takes.allows(changed):
                steps = reference.steps
                call = replace(step, arguments=changed)
                what = f"{where}: also with {name} {shown(other.value)}"
                yield Mutant("another_row", what, (*steps[: place + 1], call, *steps[place + 1 :]), place)
                return


def _other_writes(reference: Reference) -> Iterator[Mutant]:
    """A write by each tool that the reference writes nothing with, at the end."""
    own = {(step.server, step.tool) for place in reference.writes if isinstance(step := reference.steps[place], Call)}
    for (server, tool), takes in reference.takes.items():
        if takes.reads or (server, tool) in own:
            continue
        arguments = made_arguments(takes, server, reference.rows, {})
        if takes.allows(arguments):
            literal = {name: _literal(value) for name, value in arguments.items()}
            call = Call(server, tool, literal, expect_error=True)
            yield Mutant("another_tool", f"at the end also {_described(call)}", (*reference.steps, call))
