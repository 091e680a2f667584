from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.junit import as_junit
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.verdict import Finding, Result, Verdict


def run_of(*results: Result, reason: str = "why") -> RunResult:
    scenarios = []
    for number, result in enumerate(results):
        verdict = Verdict(result, "completed", reason, (Finding("state", result, reason),))
        trials = tuple(TrialResult(f"s{number}", n, verdict, 0.5, "scripted", gaps=(reason,)) for n in (1, 2))
        scenarios.append(ScenarioResult(f"s{number}", "t", "task", trials))
    return RunResult("run", tuple(scenarios), 1.0)


@pytest.mark.parametrize(
    ("result", "element"), [("pass", None), ("fail", "failure"), ("error", "error"), ("not_run", "error")]
)
def test_anything_but_a_pass_is_red(result: Result, element: str | None) -> None:
    case = ElementTree.fromstring(as_junit(run_of(result))).find("testsuite/testcase")
    assert case is not None
    assert [child.tag for child in case] == ["properties", *([element] if element else []), "system-out"]


def test_counts_and_names_are_those_of_the_scenarios() -> None:
    root = ElementTree.fromstring(as_junit(run_of("pass", "fail", "error", "not_run")))
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "2",
        "skipped": "0",
    }
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["s0", "s1", "s2", "s3"]
    assert len({(case.get("classname"), case.get("name")) for case in root.iter("testcase")}) == 4


def test_trials_are_properties_of_their_scenario() -> None:
    root = ElementTree.fromstring(as_junit(run_of("fail")))
    found = {item.get("name"): item.get("value") for item in root.iter("property")}
    assert found == {"trial.1": "fail (completed)", "trial.2": "fail (completed)"}


@settings(max_examples=150)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_the_document_is_legal_whatever_the_text(text: str) -> None:
    document = as_junit(run_of("fail", reason=text)).encode("utf-8")
    failure = ElementTree.fromstring(document).find(".//failure")
    assert failure is not None


def test_what_xml_cannot_hold_is_visible() -> None:
    text = as_junit(run_of("fail", reason="a\x00b\x1b[2Jc\ud800d\uffffe"))
    assert r"a\x00b\x1b[2Jc\ud800d\uffffe" in text
