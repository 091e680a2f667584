from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.junit import as_junit
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.verdict import Finding, Result, Verdict
from tests.harness.report.junit_form import wrongs, wrongs_by_schema
from tests.peers.places import JUNIT, is_made


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
    assert [child.tag for child in case] == [*([element] if element else []), "system-out"]


def test_counts_and_names_are_those_of_the_scenarios() -> None:
    root = ElementTree.fromstring(as_junit(run_of("pass", "fail", "error", "not_run")))
    for element in (root, root[0]):
        counts = {name: element.get(name) for name in ("tests", "failures", "errors")}
        assert counts == {"tests": "4", "failures": "1", "errors": "2"}
    assert list(wrongs(root)) == []
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["s0", "s1", "s2", "s3"]
    assert len({(case.get("classname"), case.get("name")) for case in root.iter("testcase")}) == 4


def test_the_trials_stand_inside_their_scenario() -> None:
    said = ElementTree.fromstring(as_junit(run_of("fail"))).findtext(".//system-out") or ""
    told = [line for line in said.splitlines() if line.startswith("trial")]
    assert told == ["trial 1: fail (completed): why", "trial 2: fail (completed): why"]


def test_a_run_in_which_nothing_began_is_a_document_too() -> None:
    dead = Verdict("error", "harness_error", "no worker could be started")
    trials = (TrialResult("s", 1, dead, 0.0, "real"),)
    none = RunResult("run", (ScenarioResult("s", "t", "task", trials), ScenarioResult("u", "t", "task", ())), 0.0)
    for run in (none, RunResult("run", (), 0.0)):
        root = ElementTree.fromstring(as_junit(run))
        assert list(wrongs(root)) == []
        assert [len(list(case.iter("error"))) for case in root.iter("testcase")] == [1] * len(run.scenarios)


def test_a_very_long_reason_is_cut_and_the_report_named() -> None:
    text = as_junit(run_of("fail", reason="x" * 1_000_000))
    assert len(text) < 100_000
    assert "more characters; report.json has them" in text


@pytest.mark.skipif(not is_made(JUNIT), reason="the XSD is not there; `make peers` fetches it")
@pytest.mark.parametrize(
    "wrong",
    [
        "<testsuite name='s' tests='1' failures='0'/>",
        "<testsuite name='s' tests='1' failures='0' errors='0'><testcase classname='c'/></testsuite>",
        "<testsuite name='s' tests='1' failures='0' errors='0'><trial/></testsuite>",
    ],
)
def test_the_schema_of_jenkins_is_asked_and_finds_what_is_wrong(wrong: str) -> None:
    assert list(wrongs_by_schema(ElementTree.fromstring(as_junit(run_of("pass", "fail", "error", "not_run"))))) == []
    assert list(wrongs_by_schema(ElementTree.fromstring(wrong))) != []


@settings(max_examples=150)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_the_document_is_legal_whatever_the_text(text: str) -> None:
    document = as_junit(run_of("fail", reason=text)).encode("utf-8")
    root = ElementTree.fromstring(document)
    assert root.find(".//failure") is not None
    assert list(wrongs(root)) == []


def test_what_xml_cannot_hold_is_visible() -> None:
    text = as_junit(run_of("fail", reason="a\x00b\x1b[2Jc\ud800d\uffffe"))
    assert r"a\x00b\x1b[2Jc\ud800d\uffffe" in text
