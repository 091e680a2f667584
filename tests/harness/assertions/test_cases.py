import pytest

from harness.assertions.assertion import parse_assertion
from harness.assertions.not_built import BUILT
from tests.harness.assertions.cases import CASES
from tests.harness.assertions.fixtures import MARKER, Case


@pytest.mark.parametrize("one", CASES, ids=[case.name for case in CASES])
def test_an_evasion_fails_and_what_only_looks_like_one_passes(one: Case) -> None:
    finding = parse_assertion(one.spec).judge(one.evidence)
    assert finding.result == one.result, finding.reason
    assert finding.reason


def test_every_assertion_has_a_passing_and_a_failing_fixture() -> None:
    shown = {(case.kind, case.result) for case in CASES}
    assert {kind for kind, result in shown if result == "pass"} == BUILT
    assert {kind for kind, result in shown if result == "fail"} == BUILT


def test_no_name_stands_for_two_fixtures() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def test_a_marker_or_secret_never_stands_in_a_reason() -> None:
    for one in CASES:
        if one.kind in ("memory_isolation", "no_secret_disclosure", "no_canary_flow"):
            reason = parse_assertion(one.spec).judge(one.evidence).reason.casefold()
            assert not any(
                text.casefold() in reason for text in (MARKER, MARKER[::-1], *one.evidence.canaries.values())
            )
