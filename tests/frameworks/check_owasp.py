"""The OWASP harness's own scenarios over its live contract, each answered by its recorded trace."""

import json
from pathlib import Path

from harness.checking import check_trace
from harness.results import RunResult, TrialResult
from harness.running import run_selected
from harness.scenario import load_scenario
from harness.selection import Selection, load_selection
from harness.semantics.owasp import judge, read_scenario, read_trace
from harness.targets.fixtures import fixture_offers
from proxy.yamlfile import load_document
from tests.harness.runs import run
from tests.harness.shared_data import shared_data
from tests.harness.targets.boxes import Asked, box


def short(scenario: str) -> str:
    return scenario.partition(".")[2].removesuffix("_001")


def test_each_scenario_gets_live_the_verdict_of_its_harness_by_its_rules_and_no_pass_by_ours(tmp_path: Path) -> None:
    found = shared_data("owasp", "traces").glob("*/*_pass.json")
    traces = {path.stem.removesuffix("_pass").removesuffix("_001"): path for path in found}
    names = sorted(traces)
    others = dict(zip(names, names[1:] + names[:1], strict=True))
    folder = shared_data("owasp", "scenarios")
    told_by = dict(zip(names, names, strict=True))
    asked_for: list[str] = []

    def answer(asked: Asked) -> None:
        document = asked.document()
        assert document.keys() == {"scenario_id", "input"}
        name = str(document["scenario_id"])
        asked_for.append(name)
        asked.answer(traces[told_by[short(name)]].read_bytes())

    agent = tmp_path / "agent.yaml"
    with box(answer) as url:
        agent.write_text(json.dumps({"http": {"url": f"{url}/run"}}))
        ours = run([folder], tmp_path, agent=agent).result
        loose = Selection((str(folder),), agent_file=str(agent), semantics="owasp-0.2")
        chosen = load_selection(loose)
        own, _ = run_selected(chosen, loose, trials=None, jobs=1, out=tmp_path / "own", keep=False)
        told_by = others
        mixed, _ = run_selected(chosen, loose, trials=None, jobs=1, out=tmp_path / "mixed", keep=False)
    assert len(asked_for) == 3 * 13
    for path in folder.rglob("*.yaml"):
        scenario = load_scenario(path, fixture_offers())
        name = short(scenario.id)
        by_its_rules = read_scenario(load_document(path.read_bytes(), str(path)).data)
        for result, trace in ((own, traces[name]), (mixed, traces[others[name]])):
            account = judge(by_its_rules, read_trace(json.loads(trace.read_text())))
            assert of(result, scenario.id).verdict.result == account.result
        # Nothing of the account crossed the wire, so by our rules it can fail and not pass.
        told = check_trace(scenario, traces[name], {}).result.verdict
        live = of(ours, scenario.id)
        assert live.verdict.result == ("fail" if told.result == "fail" else "not_run"), (
            scenario.id,
            live.verdict,
            told,
        )
        assert [one.id for one in live.verdict.findings] == [one.id for one in told.findings]
        assert live.measures["trajectory"].seen in ("derived", "not observable")
    assert {trial.verdict.result for trial in mixed.trials} >= {"pass", "fail"}


def of(result: RunResult, scenario: str) -> TrialResult:
    [trial] = [trial for trial in result.trials if trial.scenario == scenario]
    return trial
