"""A run as Markdown, for a pull request or a job's summary: every scenario, groups of them, and why trials failed.

Refuses to know files and who reads it. An errored run is a row like any other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from harness.judge import FILE, by_report
from harness.report.estimates import NONE, ats_text, hats_text, interval_text
from harness.report.seen import NAMES
from harness.report.table import THOUGHT, rate_text, why_text
from harness.report.visible import markdown, shortened
from harness.results import WORST_FIRST, RunResult, ScenarioResult, count_statuses, rate
from harness.verdict import Result

LONGEST = 600
"""Characters of a reason that are shown."""
GROUPS = ("difficulty", "toolkit", "architecture")
"""Labels that scenarios are grouped by, where any of them has the label."""
WORDS: dict[Result, str] = {"pass": "pass", "fail": "**fail**", "not_run": "**not run**", "error": "**error**"}


def as_markdown(run: RunResult) -> str:
    """The document, ending in a newline."""
    return "\n".join(_lines(run)) + "\n"


def _lines(run: RunResult) -> Iterator[str]:
    valid = [trial for trial in run.trials if trial.valid]
    yield f"# Wiretrap: {WORDS[run.result]}"
    yield ""
    yield (
        f"Run {markdown(run.run_id)}, {len(run.scenarios)} scenarios, {run.seconds:.1f} s: "
        f"{rate_text(rate(run.trials))} trials passed, of valid ones {rate_text(rate(valid))}. "
        f"The gate {'holds' if run.broken is None else 'does not hold: ' + markdown(run.broken)}."
        + (" The run was cancelled before its end." if run.cancelled else "")
    )
    yield ""
    head = ("scenario", "verdict", "passed", "of valid", "pass^k", "pass@k", "95 % of passing", "why")
    yield from _table(head, map(_scenario, run.scenarios))
    if any(trial.kind == "imported" and by_report(trial.verdict.findings) for trial in run.trials):
        yield from ("", f"Of imported results: {FILE}.")
    if len(run.scenarios) > 1:
        yield from _over_all(run)
    yield from _group("category", run, [scenario.category for scenario in run.scenarios])
    for label in GROUPS:
        if any(label in scenario.labels for scenario in run.scenarios):
            yield from _group(label, run, [scenario.labels.get(label) for scenario in run.scenarios])
    yield from _seen(run)
    ended = [(status, count) for status, count in count_statuses(run.trials).items() if count]
    yield from ("", "## How trials ended", "")
    yield from _table(("status", "trials"), ((status, str(count)) for status, count in ended))
    causes = Counter(why for trial in run.trials if (why := why_text(trial.verdict)) is not None)
    if causes:
        yield from ("", "## Why trials failed", "")
        yield from _table(("why", "trials"), ((markdown(why), str(count)) for why, count in causes.most_common()))
    yield from _thoughts(run)
    yield from _findings(run)


def _thoughts(run: RunResult) -> Iterator[str]:
    """What a judge thought of each trial it was asked about, of those that pass too, folded away."""
    rows = [
        (
            markdown(trial.scenario),
            str(trial.trial),
            WORDS[trial.verdict.result],
            markdown(finding.id),
            "judge_failed" if opinion.success is None else str(opinion.success),
            markdown(shortened(opinion.reasoning, THOUGHT)),
        )
        for trial in run.trials
        for finding in trial.verdict.findings
        if (opinion := finding.opinion) is not None
    ]
    if rows:
        yield from ("", "<details><summary>What a judge thought</summary>", "")
        yield from _table(("of scenario", "trial", "verdict", "finding", "success", "reasoning"), rows)
        yield from ("", "</details>")


def _findings(run: RunResult) -> Iterator[str]:
    """All findings that are no pass, of every trial that is none, folded away."""
    rows = [
        (
            markdown(trial.scenario),
            str(trial.trial),
            WORDS[finding.result],
            markdown(finding.id),
            markdown(shortened(finding.reason, LONGEST)),
        )
        for trial in run.trials
        for finding in trial.verdict.findings
        if trial.verdict.result != "pass" and finding.result != "pass"
    ]
    if rows:
        yield from ("", "<details><summary>All findings that are no pass</summary>", "")
        yield from _table(("in scenario", "trial", "result", "finding", "reason"), rows)
        yield from ("", "</details>")


def _scenario(scenario: ScenarioResult) -> tuple[str, ...]:
    tasks = [scenario.task]
    reason = next((one.verdict.reason for one in scenario.trials if one.verdict.result == scenario.result), "no trial")
    return (
        markdown(scenario.id),
        WORDS[scenario.result],
        rate_text(scenario.over_all),
        rate_text(scenario.over_valid),
        hats_text(tasks),
        ats_text(tasks),
        interval_text(tasks),
        "" if scenario.result == "pass" else markdown(shortened(reason, LONGEST)),
    )


def _over_all(run: RunResult) -> Iterator[str]:
    yield from ("", "## Over all", "")
    head = ("scenarios", "pass^k", "pass@k", "95 % of passing")
    row = (str(len(run.scenarios)), hats_text(run.tasks), ats_text(run.tasks), interval_text(run.tasks))
    yield from _table(head, [row])


def _group(name: str, run: RunResult, values: Sequence[str | None]) -> Iterator[str]:
    groups: dict[str | None, list[ScenarioResult]] = {}
    for scenario, value in zip(run.scenarios, values, strict=True):
        groups.setdefault(value, []).append(scenario)
    if len(groups) < 2:
        return
    yield from ("", f"## By {name}", "")
    head = (name, "scenarios", *(word.replace("_", " ") for word in reversed(WORST_FIRST)), "passed", "of valid")
    ordered = sorted(groups.items(), key=lambda item: (item[0] is None, item[0] or ""))
    yield from _table((*head, "pass^1", "95 % of passing"), (_member(value, found) for value, found in ordered))


def _member(value: str | None, scenarios: Sequence[ScenarioResult]) -> tuple[str, ...]:
    counts = Counter(scenario.result for scenario in scenarios)
    trials = [trial for scenario in scenarios for trial in scenario.trials]
    valid = [trial for trial in trials if trial.valid]
    tasks = [scenario.task for scenario in scenarios]
    return (
        NONE if value is None else markdown(value),
        str(len(scenarios)),
        *(str(counts[result]) for result in reversed(WORST_FIRST)),
        rate_text(rate(trials)),
        rate_text(rate(valid)),
        hats_text(tasks).partition(",")[0].removeprefix("1: "),
        interval_text(tasks),
    )


def _seen(run: RunResult) -> Iterator[str]:
    """What could be seen of each target; nothing where no trial says."""
    if run.targets:
        yield from ("", "## What could be seen", "")
        rows = ((markdown(name), *(cell.text for cell in cells.values())) for name, cells in run.targets.items())
        yield from _table(("target", *NAMES.values()), rows)


def _table(head: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
