import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.mutants import Mutant, Reference, Wrong, as_agent, mutants, written_out
from harness.othervalues import Rows, Takes
from harness.references import Binding, resolve
from harness.steps import Call, Fetch, Goal, Say, Step
from proxy.spans import JSON

ROWS: Rows = {
    "desk": {
        "tickets": {
            1: {"id": 1, "status": "open", "owner": "mira@house.example"},
            2: {"id": 2, "status": "closed", "owner": "jonas@house.example"},
        }
    }
}
SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {
        "ticket_id": {"type": "integer", "minimum": 0},
        "status": {"type": "string", "enum": ["open", "closed", "held"], "default": "open"},
        "urgent": {"type": "boolean"},
        "to": {"anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "string"}]},
        "note": {"type": "string"},
        "more": {"type": "object", "properties": {"level": {"enum": [1, 2]}}, "additionalProperties": False},
    },
    "required": ["ticket_id"],
    "additionalProperties": False,
}
TAKES = {("desk", "update"): Takes(SCHEMA, False), ("desk", "read"): Takes(SCHEMA, True)}

ARGUMENTS = st.fixed_dictionaries(
    {"ticket_id": st.integers(0, 4)},
    optional={
        "status": st.sampled_from(["open", "closed", "held"]),
        "urgent": st.booleans(),
        "to": st.lists(st.sampled_from(["mira@house.example", "x@y.example"]), min_size=1, max_size=3),
        "note": st.text(max_size=5) | st.just("costs ${x.text} and $${"),
        "more": st.fixed_dictionaries({"level": st.sampled_from([1, 2])}),
    },
)
CALLS = st.builds(Call, st.just("desk"), st.sampled_from(["update", "read"]), ARGUMENTS)
FETCHES = st.builds(Fetch, st.just("desk"), st.sampled_from(["resource", "prompt"]), st.sampled_from(["a:b", "c"]))
STEPS = st.lists(CALLS | FETCHES | st.builds(Say, st.text(max_size=5)) | st.builds(Goal, st.just("g")), max_size=4)


@st.composite
def references(draw: st.DrawFn) -> Reference:
    steps = tuple(draw(STEPS))
    updates = [place for place, step in enumerate(steps) if isinstance(step, Call) and step.tool == "update"]
    writes = draw(st.sets(st.sampled_from(updates))) if updates else set()
    return Reference(steps, frozenset(writes), TAKES, ROWS)


def as_json(step: Step) -> str:
    match step:
        case Call():
            return json.dumps([step.server, step.tool, step.arguments], sort_keys=True)
        case Fetch():
            return json.dumps([step.canonical, step.arguments], sort_keys=True)
        case Say(text):
            return json.dumps(text)
        case goal:
            return json.dumps({"goal": goal.id})


def places(mutant: Mutant, reference: Reference) -> tuple[int, int]:
    """How many steps of the reference are gone, and how many steps are new, when all others keep their order."""
    ours, theirs = [as_json(step) for step in reference.steps], [as_json(step) for step in mutant.steps]
    table = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for row, one in enumerate(ours):
        for column, other in enumerate(theirs):
            longest = max(table[row][column + 1], table[row + 1][column])
            table[row + 1][column + 1] = table[row][column] + 1 if one == other else longest
    kept = table[-1][-1]
    return len(ours) - kept, len(theirs) - kept


@settings(max_examples=25)
@given(references())
def test_a_mutant_differs_from_its_reference_in_exactly_one_way(reference: Reference) -> None:
    for mutant in mutants(reference, (Wrong((Goal("another"),), 0),)):
        match mutant.kind:
            case "start":
                assert mutant.steps == ()
            case "no_calls":
                assert mutant.steps == tuple(step for step in reference.steps if not isinstance(step, Call | Fetch))
            case "dropped":
                assert places(mutant, reference) == (1, 0)
            case "twice" | "another_row" | "another_tool" | "forbidden":
                assert places(mutant, reference) == (0, 1)
            case "silent" | "changed" | "left_out" | "added":
                assert places(mutant, reference) == (1, 1)
                assert mutant.step is not None
                assert is_one_change(mutant.steps[mutant.step], reference.steps[mutant.step], mutant.kind)


def is_one_change(new: Step, old: Step, kind: str) -> bool:
    match new, old:
        case Call(arguments=now), Call(arguments=before):
            changed = {name for name in now.keys() & before.keys() if json.dumps(now[name]) != json.dumps(before[name])}
            added, gone = now.keys() - before.keys(), before.keys() - now.keys()
            found = Counter(changed=len(changed), added=len(added), left_out=len(gone))
            return found == Counter({"changed": 0, "added": 0, "left_out": 0, kind: 1}) and new.tool == old.tool
        case Say(now), Say(before):
            return kind == "silent" and now == "" != before
        case _:
            return False


@settings(max_examples=25)
@given(references())
def test_every_call_of_a_mutant_fits_its_schema(reference: Reference) -> None:
    for mutant in mutants(reference):
        for step in mutant.steps:
            if isinstance(step, Call):
                assert TAKES[step.server, step.tool].allows(step.arguments)


@settings(max_examples=25)
@given(references())
def test_no_two_mutants_are_the_same_run_and_none_is_the_reference(reference: Reference) -> None:
    runs = ["\n".join(map(as_json, mutant.steps)) for mutant in mutants(reference)]
    assert len(set(runs)) == len(runs)
    assert "\n".join(map(as_json, reference.steps)) not in runs


@settings(max_examples=25)
@given(references())
def test_a_scripted_agent_does_what_a_mutant_says_and_takes_no_text_for_a_reference(reference: Reference) -> None:
    for plain, written in zip(reference.steps, as_agent(reference.steps), strict=True):
        match plain, written:
            case Call(), Call():
                assert (resolve(written.arguments, {}), written.expect_error) == (plain.arguments, True)
            case Fetch(), Fetch():
                assert (written.what, written.expect_error) == (plain.what, True)
            case Say(text), Say(said):
                assert resolve(said, {}) == text
            case _:
                assert plain == written


def kinds(reference: Reference) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for mutant in mutants(reference):
        found.setdefault(mutant.kind, []).append(mutant.what)
    return found


def test_the_mutants_of_a_write_are_those_of_the_contract() -> None:
    call = Call("desk", "update", {"ticket_id": 1, "status": "held", "urgent": True, "to": ["mira@house.example"]})
    found = kinds(Reference((call, Say("Done.")), frozenset({0}), TAKES, ROWS))
    assert found["start"] == ["nothing is done"]
    assert found["silent"] == ["the final answer is empty"]
    assert found["changed"] == [
        "step 1, update: ticket_id 1 becomes 2, another row's",
        "step 1, update: ticket_id 1 becomes 0, one less",
        'step 1, update: status "held" becomes "open", another of its enum',
        'step 1, update: status "held" becomes "closed", another of its enum',
        "step 1, update: urgent true becomes false, flipped",
        'step 1, update: to ["mira@house.example"] becomes ["jonas@house.example"], another row\'s',
    ]
    assert found["left_out"] == [f"step 1, update: {name} left out" for name in ("status", "urgent", "to")]
    assert found["twice"] == ["step 1, update: done twice"]
    assert found["another_row"] == ["step 1, update: also with ticket_id 2"]
    # Without calls is what dropping the only one comes to.
    assert ("dropped" in found, found["no_calls"]) == (False, ["no call is made"])


def test_an_argument_that_says_its_default_is_not_left_out() -> None:
    call = Call("desk", "read", {"ticket_id": 1, "status": "open"})
    assert "left_out" not in kinds(Reference((call,), frozenset(), TAKES, ROWS))


def test_what_is_added_to_a_write_is_not_what_its_row_has() -> None:
    takes = {("desk", "update"): Takes({**SCHEMA, "required": ["ticket_id"]}, False)}
    call = Call("desk", "update", {"ticket_id": 2})
    added = kinds(Reference((call,), frozenset({0}), takes, ROWS))["added"]
    assert 'step 1, update: status "held" added' in added


def test_a_reference_that_only_reads_gets_a_write_in_some_row() -> None:
    call = Call("desk", "read", {"ticket_id": 1})
    assert kinds(Reference((call,), frozenset(), TAKES, ROWS))["another_tool"] == [
        'at the end also update {"ticket_id": 1, "status": "open"}'
    ]


def test_a_reference_that_writes_gets_a_write_by_each_other_tool_of_each_server() -> None:
    writes = TAKES["desk", "update"]
    takes = {**TAKES, ("desk", "close"): writes, ("far", "update"): writes}
    call = Call("desk", "update", {"ticket_id": 1})
    assert kinds(Reference((call,), frozenset({0}), takes, {**ROWS, "far": ROWS["desk"]}))["another_tool"] == [
        'at the end also close {"ticket_id": 1, "status": "open"}',
        'at the end also update {"ticket_id": 1, "status": "open"}',
    ]


def test_answers_are_written_out_where_later_steps_use_them() -> None:
    steps = (
        Call("desk", "read", {"ticket_id": 1}, name="one"),
        Call("desk", "update", {"ticket_id": "${one.json.id}", "note": "as $${ and ${one.text}"}),
        Say("${one.json.id}"),
    )
    answer = Binding("the ${text}", False, {"id": 7}, True)
    assert written_out(steps, [answer, Binding("", False)]) == (
        Call("desk", "read", {"ticket_id": 1}),
        Call("desk", "update", {"ticket_id": 7, "note": "as ${ and the ${text}"}),
        Say("7"),
    )
