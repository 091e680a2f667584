"""A trial's verdict by the rules of the OWASP harness: of the agent's own account where nothing crossed the wire.

Refuses to know how a trial is run, and our own rules.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from harness.semantics.owasp import NAME, OwaspError, OwaspScenario, OwaspTrace, judge, read_scenario, read_trace
from harness.trace import Trace
from harness.tracefile import trace_to_json
from harness.verdict import Finding, Status, Verdict
from proxy.problem import Problem, ProblemError
from proxy.spans import JSON
from proxy.yamlfile import load_document

Rules = Literal["wiretrap", "owasp-0.2"]
"""By whose rules a run is judged."""


def rules_of(manifest: Mapping[str, JSON]) -> Rules:
    """By whose rules the run of a manifest is judged."""
    options = manifest.get("options")
    return "owasp-0.2" if isinstance(options, dict) and options.get("semantics") == NAME else "wiretrap"


def loose_scenario(path: Path) -> OwaspScenario:
    """The scenario of a file as the OWASP harness reads it. Raises ProblemError where that would refuse it."""
    try:
        return read_scenario(load_document(path.read_bytes(), str(path)).data)
    except OwaspError as error:
        raise ProblemError([Problem(str(path), None, "", f"--semantics {NAME}: {error}")]) from error


def loose_verdict(scenario: OwaspScenario, trace: OwaspTrace) -> Verdict:
    """The verdict by its rules; each finding rests on what was reported."""
    told = judge(scenario, trace)
    findings = tuple(Finding(item.id, item.result, item.evidence, "reported") for item in told.assertions)
    reason = next((item.evidence for item in told.assertions if item.result == told.result), "")
    return Verdict(told.result, "completed", reason, findings)


def loosely_judged(scenario: OwaspScenario, trace: Trace, said: JSON, status: Status) -> Verdict:
    """The verdict of a trial: of what was seen, or of what the agent said as it said it, where nothing was seen."""
    if status != "completed":
        result: Literal["fail", "error"] = "fail" if status in ("agent_timeout", "agent_crash", "limit") else "error"
        return Verdict(result, status, f"the trial ended as {status}")
    account = said if said and trace.coverage.tool_calls != "wire" else trace_to_json(trace)
    try:
        return loose_verdict(scenario, read_trace(account))
    except OwaspError as error:
        return Verdict("error", status, f"--semantics {NAME}: what the agent reported cannot be read: {error}")
