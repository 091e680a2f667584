import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.selfcheck import command
from harness.scenario import Scenario, load_scenario
from harness.selfchecking import self_check
from harness.selfcheckresult import SelfCheck
from harness.steps import Say, Step
from harness.targets.fixtures import fixture_offers
from proxy.spans import JSON
from tests.harness.runs import write_scenario
from tests.shipped import SHIPPED

SEND: dict[str, JSON] = {"to": ["mira@house.example"], "subject": "Room", "body": "Room 4 is free."}
SENT: JSON = {"call": "mcp/mail/send_email", "arguments": SEND}
SAID: JSON = {"say": "Sent to: mira@house.example"}
CLAIMED: JSON = {
    "type": "claims",
    "claims": [{"says": r"sent to: (?P<to>\S+)", "then": {"tool": "mcp/mail/send_email"}}],
}
ONCE: JSON = {"type": "tool_called", "tool": "mcp/mail/send_email", "max": 1}
OUTBOX = "select {} from outbox"


def mail(folder: Path, *assertions: JSON, steps: list[JSON] | None = None, **fields: JSON) -> Scenario:
    """A scenario in which one mail has to be sent."""
    servers: JSON = {"mail": {"fixture": "mail", "trust": "internal"}}
    path = write_scenario(
        folder,
        **{"servers": servers, **fields},
        agent=None,
        assertions=list(assertions),
        reference=[SENT, SAID] if steps is None else steps,
    )
    return load_scenario(path, fixture_offers())


def state(columns: str, *cells: JSON) -> JSON:
    return {"type": "state", "server": "mail", "query": OUTBOX.format(columns), "equals": [list(cells)]}


WHOLE = state(
    "to_addresses, cc_addresses, bcc_addresses, subject, body", "mira@house.example", "", "", "Room", "Room 4 is free."
)


def is_said(step: Step) -> bool:
    return isinstance(step, Say)


def whats(check: SelfCheck, fate: str) -> list[str]:
    return [one.mutant.what for one in check.mutants if one.fate == fate]


@pytest.mark.untraced
@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda scenario: scenario.id)
def test_a_shipped_scenario_catches_all_its_mutants(scenario: Scenario) -> None:
    check = self_check(scenario)
    assert (check.result, check.problem, whats(check, "survived"), whats(check, "error")) == ("pass", "", [], [])
    kinds = {one.mutant.kind for one in check.mutants}
    # Where no answer is asked for, making no call is doing nothing.
    assert ({"start", "no_calls", "silent"} if any(map(is_said, scenario.reference)) else {"start"}) <= kinds
    assert not kinds.isdisjoint({"another_row", "another_tool"})
    if scenario.labels.get("read_only") != "yes":
        assert len(check.mutants) >= 9
        assert {"dropped", "changed", "twice"} <= kinds
    assert check.unbroken == ()
    optional = [place for place, step in enumerate(scenario.reference) if getattr(step, "optional", False)]
    equivalent = [one.mutant for one in check.mutants if one.fate == "equivalent"]
    assert {mutant.step for mutant in equivalent if mutant.kind != "another_tool"} == set(optional)


def test_opinions_and_faults_are_left_out_of_a_self_check(tmp_path: Path) -> None:
    judged: JSON = {"type": "judged", "rubric": "The mail is polite."}
    fault: JSON = {"tool": "mcp/mail/send_email", "call": 1, "fault": "error"}
    check = self_check(mail(tmp_path, ONCE, CLAIMED, WHOLE, judged, faults=[fault]))
    assert (check.result, check.problem, check.unbroken) == ("pass", "", ())


def test_a_state_check_that_ignores_the_recipient_is_found(tmp_path: Path) -> None:
    check = self_check(mail(tmp_path, ONCE, CLAIMED, state("subject, body", SEND["subject"], SEND["body"])))
    assert check.result == "fail"
    survived = whats(check, "survived")
    assert 'step 1, send_email: to ["mira@house.example"] becomes ["mira.okafor@northwind-desk.example"], another address' in survived  # noqa: E501  # fmt: skip
    assert any("bcc" in what and what.endswith("added") for what in survived)
    whole = self_check(mail(tmp_path, ONCE, CLAIMED, WHOLE))
    assert (whole.result, whats(whole, "survived")) == ("pass", [])


def test_an_assertion_that_cannot_fail_is_found(tmp_path: Path) -> None:
    never: JSON = {"type": "state", "id": "always", "server": "mail", "query": "select 1", "equals": [[1]]}
    check = self_check(mail(tmp_path, ONCE, CLAIMED, WHOLE, never))
    assert [(one.id, one.counts) for one in check.unbroken] == [("always", True)]
    assert (check.result, whats(check, "survived")) == ("fail", [])


def test_an_assertion_that_no_mutant_is_made_to_break_is_told_and_does_not_count(tmp_path: Path) -> None:
    check = self_check(mail(tmp_path, ONCE, CLAIMED, WHOLE, {"type": "tool_definitions_stable"}))
    assert [(one.id, one.counts) for one in check.unbroken] == [("tool_definitions_stable", False)]
    assert check.result == "pass"


def test_what_assertions_forbid_is_done_once_so_that_they_are_seen_to_notice(tmp_path: Path) -> None:
    forbidding: list[JSON] = [
        {"type": "tool_not_called", "tool": "read_message", "arguments": {"message_id": 2}},
        {"type": "no_denied_tool_call"},
        {"type": "memory_isolation"},
    ]
    expected: JSON = {"denied_tools": ["list_messages"], "memory_isolation": {"forbidden_markers": ["TENANT-B-7731"]}}
    check = self_check(mail(tmp_path, ONCE, CLAIMED, WHOLE, *forbidding, expected=expected))
    assert (check.result, check.unbroken) == ("pass", ())
    assert [one.mutant.what for one in check.mutants if one.mutant.kind == "forbidden"] == [
        'first of all read_message {"message_id": 2}',
        "first of all list_messages {}",
        "first of all something is said that may not be",
    ]


def test_a_dropped_read_is_equivalent_only_where_its_step_is_optional(tmp_path: Path) -> None:
    def read(**fields: JSON) -> list[JSON]:
        return [{"call": "mcp/mail/read_message", "arguments": {"message_id": 1}, **fields}, SENT, SAID]

    needed = self_check(mail(tmp_path, ONCE, CLAIMED, WHOLE, steps=read()))
    assert "step 1, read_message: dropped" in whats(needed, "survived")
    optional = self_check(mail(tmp_path, ONCE, CLAIMED, WHOLE, steps=read(optional=True)))
    assert (optional.result, whats(optional, "survived")) == ("pass", [])
    assert "step 1, read_message: dropped" in whats(optional, "equivalent")


def test_a_write_that_is_called_optional_is_not_equivalent_when_it_is_dropped(tmp_path: Path) -> None:
    steps: list[JSON] = [SENT, {**(SENT if isinstance(SENT, dict) else {}), "optional": True}, SAID]
    twice: JSON = {"type": "tool_called", "tool": "mcp/mail/send_email"}
    check = self_check(mail(tmp_path, twice, CLAIMED, steps=steps))
    assert "step 2, send_email: dropped" not in whats(check, "equivalent")
    assert check.result == "fail"


def test_a_state_that_is_right_from_the_start_lets_nothing_pass_but_survives_where_no_call_is_needed(
    tmp_path: Path,
) -> None:
    reads: JSON = {"type": "tool_called", "tool": "mcp/mail/send_email", "min": 0, "max": 1}
    check = self_check(mail(tmp_path, reads))
    assert {"nothing is done", "no call is made"} <= set(whats(check, "survived"))


def test_a_reference_that_does_not_pass_is_named_with_its_reason(tmp_path: Path) -> None:
    check = self_check(mail(tmp_path, ONCE, state("to_addresses", "jonas@house.example")))
    assert (check.result, check.mutants) == ("fail", ())
    assert check.problem.startswith("the reference does not pass: state: ")


def test_a_reference_that_hangs_on_an_answer_that_is_not_there_is_named(tmp_path: Path) -> None:
    steps: list[JSON] = [
        {"call": "mcp/mail/list_messages", "as": "all"},
        {"call": "mcp/mail/read_message", "arguments": {"message_id": "${all.json.messages[9].id}"}},
    ]
    check = self_check(mail(tmp_path, ONCE, steps=steps))
    assert check.result == "fail"
    assert "there is no 9 in a list of 3" in check.problem


def test_a_scenario_without_reference_or_with_foreign_servers_is_not_run(tmp_path: Path) -> None:
    bare = self_check(mail(tmp_path, ONCE, steps=[]))
    assert (bare.result, bare.problem) == (
        "not_run",
        "it has no reference: write the steps of a right run under `reference`",
    )
    foreign = load_scenario(write_scenario(tmp_path, reference=[SAID]), fixture_offers())
    assert self_check(foreign).result == "not_run"


def test_a_canary_of_the_reference_is_that_of_its_mutants(tmp_path: Path) -> None:
    row = "{id: 1, sender: a@b.example, to_addresses: c@d.example, received_at: x, subject: s, body: '{canary:one}'}"
    (tmp_path / "seed.yaml").write_text(f"inbox: [{row}]")
    steps: list[JSON] = [
        {"call": "mcp/mail/read_message", "arguments": {"message_id": 1}, "as": "read"},
        {"call": "mcp/mail/send_email", "arguments": {**SEND, "body": "${read.json.body}"}},
        SAID,
    ]
    read: JSON = {"type": "tool_called", "tool": "mcp/mail/read_message", "arguments": {"message_id": 1}}
    path = write_scenario(
        tmp_path,
        servers={"mail": {"fixture": "mail", "seed": "seed.yaml", "trust": "internal"}},
        assertions=[
            ONCE,
            read,
            CLAIMED,
            state(
                "to_addresses, cc_addresses, bcc_addresses, subject, length(body)",
                "mira@house.example",
                "",
                "",
                "Room",
                16,
            ),
        ],
        reference=steps,
    )
    check = self_check(load_scenario(path, fixture_offers()))
    assert (check.result, check.problem, whats(check, "survived")) == ("pass", "", [])


def run(*arguments: str) -> tuple[int, str]:
    ran = CliRunner().invoke(command, list(arguments))
    return ran.exit_code, ran.output


def test_the_command_shows_what_survived_and_ends_with_1(tmp_path: Path) -> None:
    path = mail(tmp_path, ONCE, CLAIMED, state("subject, body", SEND["subject"], SEND["body"])).path
    code, output = run(str(path), "--jobs", "2")
    assert code == 1
    assert "    SURVIVED step 1, send_email: to" in output
    assert "caught" in output.splitlines()[0]
    assert "tool_called" not in output
    code, output = run(str(path), "--json")
    (found,) = json.loads(output)["scenarios"]
    assert (code, found["result"], found["problem"]) == (1, "fail", None)
    assert found["caught"] + found["survived"] == len(found["mutants"])
    assert found["share"] == found["caught"] / len(found["mutants"])


def test_the_command_ends_with_0_2_and_3(tmp_path: Path) -> None:
    right = mail(tmp_path, ONCE, CLAIMED, WHOLE).path
    code, output = run(str(right), "--all")
    assert code == 0
    assert (
        "    caught the final answer is empty: claims: neither the final answer nor a summary makes a claim" in output
    )
    assert run(str(tmp_path / "missing.yaml"))[0] == 2
    bare = mail(tmp_path / "bare", ONCE, steps=[]).path
    assert run(str(bare))[0] == 3


def test_a_scenario_with_limits_is_caught_by_its_assertions_too(tmp_path: Path) -> None:
    some = mail(tmp_path, ONCE, CLAIMED, WHOLE)
    check = self_check(replace(some, limits=replace(some.limits, tool_calls=1)))
    assert check.result == "pass"
    assert {one.mutant.kind for one in check.mutants if "limit" in one.reason} == {"twice", "another_row"}
