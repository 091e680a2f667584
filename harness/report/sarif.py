"""A run as SARIF 2.1.0, as GitHub's code scanning reads it: what is no pass, at its line in the scenario's file.

Refuses to know files; where a scenario is written is given. What GitHub asks for beyond the standard: a physical
location relative to the repository, rules with texts, and `primaryLocationLineHash`, by which it knows a result again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import quote

from harness.assertions.assertion import description
from harness.category import SECURITY
from harness.judge import EVIDENCE
from harness.report.visible import sarif_message, shortened
from harness.results import RunResult, ScenarioResult, TrialResult, worst
from harness.verdict import Result
from harness.written import Place, Written
from proxy import __version__
from proxy.spans import JSON
from proxy.visible import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LONGEST = 2000
"""Characters of a message; GitHub shows the first 1,000."""
VERDICT = "verdict"
"""The rule of a trial that is no pass though no finding says so."""
LEVELS: dict[Result, str] = {"pass": "none", "not_run": "warning", "fail": "error", "error": "error"}
OTHER_RULES: dict[str, str] = {
    "state_unexplained": "Recorded calls explain every change of state.",
    EVIDENCE: "The evidence of a trial is whole, and nobody tampered with it.",
    VERDICT: "A scenario has something that can be judged, and evidence to judge it by.",
    "agent_timeout": "The agent ends before limits.seconds.",
    "agent_crash": "The agent comes to its own end, with exit code 0.",
    "limit": "The agent keeps to the limits of the scenario.",
    "infra_error": "Servers, databases and the agent's program work.",
    "harness_error": "Wiretrap itself works.",
    "cancelled": "A trial is carried through.",
}
"""Rules that are no types of assertions: what holds where nothing is reported."""


@dataclass(slots=True)
class _Problem:
    """What is wrong in one place of a scenario, in `trials` of it; `reason` is the first one of the worst result."""

    place: Place
    result: Result = "pass"
    reason: str = ""
    trials: list[int] = field(default_factory=list)

    def add(self, trial: int, result: Result, reason: str) -> None:
        self.trials.append(trial)
        if worst([self.result, result]) != self.result:
            self.result, self.reason = result, reason


def as_sarif(run: RunResult) -> dict[str, JSON]:
    """The log, with one run and a result for each place of a scenario in which any trial is no pass."""
    found = [(scenario, problem) for scenario in run.scenarios for problem in _problems(scenario)]
    rules = sorted({visible(problem.place.type) for _, problem in found})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "Wiretrap", "version": __version__, "rules": [_rule(name) for name in rules]}
                },
                "automationDetails": {"id": f"wiretrap/{run.run_id}"},
                "invocations": [{"executionSuccessful": not run.cancelled, "exitCode": run.exit_code}],
                "results": [_result(scenario, problem, rules) for scenario, problem in found],
            }
        ],
    }


def _problems(scenario: ScenarioResult) -> list[_Problem]:
    written = scenario.written or Written(scenario.id)
    problems: dict[Place, _Problem] = {}
    for trial in scenario.trials:
        for place, result, reason in _told(trial, written):
            problems.setdefault(place, _Problem(place)).add(trial.trial, result, reason)
    if not scenario.trials:
        place = Place(VERDICT, VERDICT, written.line)
        problems[place] = _Problem(place, "not_run", "no trial ran")
    return list(problems.values())


def _told(trial: TrialResult, written: Written) -> Iterator[tuple[Place, Result, str]]:
    verdict = trial.verdict
    ended = verdict.status != "completed"
    if ended:
        yield Place(verdict.status, verdict.status, written.line), verdict.result, verdict.reason
    telling = [
        (written.place(number, finding.id), finding.result, finding.reason)
        for number, finding in enumerate(verdict.findings)
        # After a bad end nothing can be told of what did not happen.
        if finding.result in ("fail", "error") or (finding.result == "not_run" and not ended)
    ]
    yield from telling
    if not (telling or ended) and verdict.result != "pass":
        yield Place(VERDICT, VERDICT, written.line), verdict.result, verdict.reason


def _rule(name: str) -> dict[str, JSON]:
    text = OTHER_RULES.get(name) or description(name)
    tags: list[JSON] = ["wiretrap", *(["security"] if name in SECURITY or name == EVIDENCE else [])]
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.split("_")),
        "shortDescription": {"text": sarif_message(shortened(name.replace("_", " "), 200))},
        "fullDescription": {"text": sarif_message(text)},
        "help": {"text": sarif_message(f"{text} docs/scenario.md and docs/verdicts.md say how it is judged.")},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": tags},
    }


def _result(scenario: ScenarioResult, problem: _Problem, rules: list[str]) -> dict[str, JSON]:
    place, written = problem.place, scenario.written or Written(scenario.id)
    rule = visible(place.type)
    trials = f" (trials {', '.join(map(str, problem.trials))})" if len(scenario.trials) > 1 else ""
    text = f"{scenario.id}: {place.finding}: {problem.result.replace('_', ' ')}{trials}: {problem.reason}"
    known = sha256("\n".join((scenario.id, *place[:2])).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": LEVELS[problem.result],
        "message": {"text": sarif_message(shortened(text, LONGEST))},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote(written.path, errors="surrogateescape"),
                        "uriBaseId": "%SRCROOT%",
                    },
                    "region": {"startLine": place.line},
                }
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{known}:1"},
        "properties": {
            "scenario": visible(scenario.id),
            "category": visible(scenario.category),
            "result": problem.result,
            "trials": [*problem.trials],
        },
    }
