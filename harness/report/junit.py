"""A run as JUnit XML: a test case for each scenario, its trials inside. Anything that is no pass is red in CI.

Refuses to know files. The elements and attributes are those of junit-10.xsd of Jenkins' xUnit plugin, which has no
`properties` in a test case and no `skipped` of all suites; so trials stand in `system-out`.
"""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.report.visible import legal_xml, shortened
from harness.results import RunResult, ScenarioResult, TrialResult

LONGEST = 4000
"""Characters of a reason that are shown."""


def as_junit(run: RunResult) -> str:
    """The XML document. `fail` is a failure, `error` and `not_run` are errors: a skipped test would be green."""
    failures = sum(scenario.result == "fail" for scenario in run.scenarios)
    errors = sum(scenario.result in ("error", "not_run") for scenario in run.scenarios)
    counts = {
        "tests": str(len(run.scenarios)),
        "failures": str(failures),
        "errors": str(errors),
        "time": f"{run.seconds:.3f}",
    }
    root = Element("testsuites", {"name": "wiretrap", **counts})
    suite = SubElement(root, "testsuite", {"name": legal_xml(run.run_id), **counts, "skipped": "0"})
    for scenario in run.scenarios:
        _add_case(suite, scenario)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _add_case(suite: Element, scenario: ScenarioResult) -> None:
    seconds = sum(trial.seconds for trial in scenario.trials)
    case = SubElement(
        suite,
        "testcase",
        {"classname": legal_xml(scenario.category), "name": legal_xml(scenario.id), "time": f"{seconds:.3f}"},
    )
    told = "\n".join(_tell(trial) for trial in scenario.trials)
    match scenario.result:
        case "pass":
            pass
        case "fail":
            _add_problem(case, "failure", scenario, told)
        case "error" | "not_run":
            _add_problem(case, "error", scenario, told)
    SubElement(case, "system-out").text = legal_xml(told)


def _add_problem(case: Element, kind: str, scenario: ScenarioResult, told: str) -> None:
    reason = next(
        (trial.verdict.reason for trial in scenario.trials if trial.verdict.result == scenario.result), "no trial ran"
    )
    problem = SubElement(case, kind, {"message": legal_xml(shortened(reason, LONGEST)), "type": scenario.result})
    problem.text = legal_xml(told)


def _tell(trial: TrialResult) -> str:
    lines = [f"trial {trial.trial}: {trial.verdict.result} ({trial.verdict.status}): {trial.verdict.reason}"]
    lines += [f"  {finding.result} {finding.id}: {finding.reason}" for finding in trial.verdict.findings]
    lines += [f"  record not complete: {gap}" for gap in trial.gaps]
    return "\n".join(shortened(line, LONGEST) for line in lines)
