"""Results in the JSON of the OWASP Agent Security Regression Harness: one scenario's, or a suite's.

Refuses to know by which rules the results came about.
"""

from collections.abc import Mapping, Sequence

from harness.checked import Checked
from harness.results import worst
from proxy.spans import JSON

_LISTS = ("messages", "tool_calls", "events")


def as_owasp_result(checked: Checked) -> dict[str, JSON]:
    """One result by its `result.schema.json`. A trial that has no trace shows an empty one."""
    return {
        "scenario_id": checked.id,
        "mode": "trace",
        "result": checked.result.verdict.result,
        "assertions": [
            {"id": finding.id, "result": finding.result, "evidence": _text(finding.reason)}
            for finding in checked.result.verdict.findings
        ],
        "trace": _lists(checked.trace or {}),
    }


def as_owasp_suite(checked: Sequence[Checked]) -> dict[str, JSON]:
    """Several results by its `suite_result.schema.json`; the trials of one scenario are one row, the worst of them."""
    scenarios: dict[str, list[Checked]] = {}
    for one in checked:
        scenarios.setdefault(one.id, []).append(one)
    rows = [_row(trials) for trials in scenarios.values()]
    results = [worst([one.result.verdict.result for one in trials]) for trials in scenarios.values()]
    counts: dict[str, JSON] = {"total": len(rows)}
    counts |= {word: results.count(word) for word in ("pass", "fail", "error", "not_run")}
    return {"result": worst(results), "counts": counts, "scenarios": [*rows]}


def _row(trials: Sequence[Checked]) -> dict[str, JSON]:
    result = worst([one.result.verdict.result for one in trials])
    telling = next(one for one in trials if one.result.verdict.result == result)
    row: dict[str, JSON] = {
        "scenario_path": telling.path,
        "scenario_id": telling.id,
        "category": telling.category,
        "result": result,
        "evidence": _text(telling.result.verdict.reason),
    }
    if telling.severity is not None:
        row["severity"] = telling.severity
    if telling.trace_path is not None:
        row["trace_path"] = telling.trace_path
    if telling.trace is None:
        row["error_reason"] = "missing_trace"
    else:
        row["detail"] = as_owasp_result(telling)
    return row


def _lists(trace: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: trace.get(key, []) for key in _LISTS}


def _text(reason: str) -> str:
    return reason or "no reason is given"
