"""The OWASP harness's own scenarios over its live contract, each answered by its recorded trace."""

import json
from pathlib import Path

from harness.checking import check_trace, read_trace
from harness.scenario import load_scenario
from harness.targets.fixtures import fixture_offers
from tests.harness.runs import run
from tests.harness.shared_data import shared_data
from tests.harness.targets.boxes import Asked, box


def short(scenario: str) -> str:
    return scenario.partition(".")[2].removesuffix("_001")


def test_each_scenario_gets_live_the_verdict_of_the_same_account_as_a_file(tmp_path: Path) -> None:
    found = shared_data("owasp", "traces").glob("*/*_pass.json")
    traces = {path.stem.removesuffix("_pass").removesuffix("_001"): path for path in found}
    folder = shared_data("owasp", "scenarios")
    asked_for: list[str] = []

    def answer(asked: Asked) -> None:
        document = asked.document()
        assert document.keys() == {"scenario_id", "input"}
        name = str(document["scenario_id"])
        asked_for.append(name)
        asked.answer(traces[short(name)].read_bytes())

    agent = tmp_path / "agent.yaml"
    with box(answer) as url:
        agent.write_text(json.dumps({"http": {"url": f"{url}/run"}}))
        ran = run([folder], tmp_path, agent=agent)
    assert sorted(asked_for) == sorted(scenario.id for scenario in ran.result.scenarios)
    assert len(asked_for) == 13
    for path in folder.rglob("*.yaml"):
        scenario = load_scenario(path, fixture_offers())
        trace = traces[short(scenario.id)]
        told = check_trace(scenario, trace, {}).result.verdict
        [live] = [trial for trial in ran.result.trials if trial.scenario == scenario.id]
        # Of a file a canonical name is believed; of the target itself it is only its word.
        canonical = any(call.name is not None and call.name.startswith("mcp/") for call in read_trace(trace).tool_calls)
        assert live.verdict.result == ("not_run" if canonical else told.result), (scenario.id, live.verdict, told)
        assert [one.id for one in live.verdict.findings] == [one.id for one in told.findings]
        assert live.measures["trajectory"].seen in ("derived", "not observable")
