import sys
from pathlib import Path
from xml.etree import ElementTree

from proxy.spans import JSON
from tests.harness.runs import behave, run, write_scenario


def test_whatever_happens_to_a_trial_it_has_one_status_and_the_counts_sum_to_the_trials(tmp_path: Path) -> None:
    (tmp_path / "scripted.yaml").write_text('{"steps": [{"call": "mcp/echo/echo"}]}')
    (tmp_path / "raises.yaml").write_text('{"transport": "in_process", "steps": []}')
    nothing: JSON = {"command": [sys.executable, "-S", "-c", "pass"]}
    dying: JSON = {"echo": {"command": [sys.executable, "-S", "-c", "input()"]}}
    query = "select abs(-9223372036854775807 - (count(*) > 0)) from customers"
    overflow: JSON = {
        "type": "state",
        "server": "crm",
        "query": query,
        "equals": [[1]],
    }
    cases: dict[str, tuple[dict[str, JSON], str, str]] = {
        "never_connects": ({"agent": nothing}, "not_run", "completed"),
        "time_is_up": (
            {"agent": {"command": [*behave("endless")]}, "limits": {"seconds": 1}},
            "fail",
            "agent_timeout",
        ),
        "worker_is_killed": ({"agent": {"command": [*behave("kills_worker")]}}, "fail", "agent_crash"),
        "server_dies": ({"agent": {"scripted": "scripted.yaml"}, "servers": dying}, "error", "infra_error"),
        "server_is_missing": (
            {"agent": nothing, "servers": {"echo": {"command": ["no-such-program"]}}},
            "error",
            "infra_error",
        ),
        "check_raises": (
            {"agent": {"scripted": "raises.yaml"}, "servers": {"crm": {"fixture": "crm"}}, "assertions": [overflow]},
            "error",
            "completed",
        ),
    }
    paths = [write_scenario(tmp_path, id=name, trials=1, **fields) for name, (fields, _, _) in cases.items()]
    ran = run(paths, tmp_path, jobs=2)
    report = ran.document("report.json")
    scenarios = report["scenarios"]
    assert isinstance(scenarios, list)
    found: dict[str, tuple[str, str]] = {}
    for scenario in scenarios:
        match scenario:
            case {"id": str(name), "result": str(result), "statuses": dict(counts), "trials": list(trials)}:
                assert len(trials) == 1
                assert sum(count for count in counts.values() if isinstance(count, int)) == 1
                (status,) = [status for status, count in counts.items() if count == 1]
                found[name] = result, status
            case _:
                raise AssertionError(f"no counts in {scenario}")
    assert found == {name: (result, status) for name, (_, result, status) in cases.items()}
    over_all = report["statuses"]
    assert isinstance(over_all, dict)
    assert sum(count for count in over_all.values() if isinstance(count, int)) == len(cases)
    root = ElementTree.parse(ran.folder / "junit.xml").getroot()
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["6", "2", "4"]
