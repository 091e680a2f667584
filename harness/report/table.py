"""A run as text for a person: each scenario's verdict, why it is not a pass, and rates with their counts.

Refuses to know terminals: width and colour are given.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap

from harness.judge import FILE, by_report
from harness.opinions import count_opinions
from harness.report.estimates import estimates_text
from harness.report.visible import shortened
from harness.results import Rate, RunResult, ScenarioResult, TrialResult
from harness.verdict import Finding, Result, Status, Verdict
from proxy.visible import visible

_COLOURS: dict[Result, str] = {"pass": "32", "fail": "31", "not_run": "33", "error": "35"}
WORDS: dict[Result, str] = {"pass": "PASS", "fail": "FAIL", "not_run": "NOT RUN", "error": "ERROR"}
"""What a table calls a result."""
MIN_WIDTH = 40
THOUGHT = 300
"""Characters of what a judge thought that are shown."""


@dataclass(frozen=True, slots=True)
class Style:
    """`width` in columns, None for lines as long as they are; `colour` with ANSI sequences."""

    width: int | None = None
    colour: bool = False

    def paint(self, result: Result, text: str) -> str:
        """The text in the colour of a verdict."""
        return f"\x1b[{_COLOURS[result]}m{text}\x1b[0m" if self.colour else text

    def fold(self, text: str, indent: str, hanging: str) -> Iterator[str]:
        """The text on as many lines as the width makes of it."""
        if self.width is None:
            yield indent + text
        else:
            width = max(MIN_WIDTH, self.width)
            yield from wrap(text, width, initial_indent=indent, subsequent_indent=hanging, break_on_hyphens=False) or [
                indent
            ]


def rate_text(rate: Rate) -> str:
    """`3/4 (75 %)`, or `0/0` of nothing."""
    share = rate.share
    return f"{rate.passed}/{rate.trials}" + ("" if share is None else f" ({share * 100:.0f} %)")


def why_text(verdict: Verdict) -> str | None:
    """Why a trial failed: `task_failure`, or `coordination_failure / request_loss`. None where it has none."""
    if verdict.category is None or verdict.category == "pass":
        return None
    return verdict.category + (f" / {verdict.coordination}" if verdict.coordination is not None else "")


Said = Mapping[tuple[str, int], str]
"""Of trials, by scenario and number, a line on what the agent said at its end."""


def as_table(run: RunResult, style: Style, said: Said | None = None) -> str:
    """The whole report, ending in a newline. `said` stands under a trial that is no pass."""
    return "\n".join(_lines(run, style, said or {})) + "\n"


def _lines(run: RunResult, style: Style, said: Said) -> Iterator[str]:
    names = [visible(scenario.id) for scenario in run.scenarios]
    wide = max([len("scenario"), *map(len, names)])
    yield f"{'scenario':<{wide}}  {'verdict':<7}  {'passed':<12}  of valid"
    for name, scenario in zip(names, run.scenarios, strict=True):
        word = style.paint(scenario.result, f"{WORDS[scenario.result]:<7}")
        rates = f"{rate_text(scenario.over_all):<12}  {rate_text(scenario.over_valid)}"
        yield f"{name:<{wide}}  {word}  {rates}"
        if len(scenario.trials) > 1:
            yield from style.fold(estimates_text([scenario.task]), "    ", "      ")
        yield from _explain(scenario, style, said)
    trials = run.trials
    valid = [trial for trial in trials if trial.valid]
    passed = sum(trial.verdict.result == "pass" for trial in trials)
    yield ""
    yield (
        f"{len(run.scenarios)} {_plural('scenario', len(run.scenarios))}, {len(trials)} "
        f"{_plural('trial', len(trials))} in {run.seconds:.1f} s: {rate_text(Rate(passed, len(trials)))} passed; "
        f"of {len(valid)} valid {rate_text(Rate(sum(trial.verdict.result == 'pass' for trial in valid), len(valid)))}"
    )
    if len(trials) > 1:
        yield from style.fold(f"Over all: {estimates_text(run.tasks)}", "", "  ")
    if len(valid) < len(trials):
        yield from style.fold(
            "A trial is valid when it says something about the agent: not when it was cancelled, ended by a fault "
            "of a server, the machine or Wiretrap, or when its judge alone failed.",
            "",
            "",
        )
    if run.cancelled:
        yield "The run was cancelled before its end."


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _explain(scenario: ScenarioResult, style: Style, said: Said) -> Iterator[str]:
    many = len(scenario.trials) > 1
    for alike, group in groupby(scenario.trials, key=_told):
        trials = list(group)
        if alike.result != "pass":
            names = ", ".join(str(trial.trial) for trial in trials)
            yield from _explain_trials(f"{_plural('trial', len(trials))} {names}", alike, style, many=many)
            words = next((text for trial in trials if (text := said.get((trial.scenario, trial.trial)))), None)
            if words is not None:
                yield from style.fold(visible(words), "    ", "      ")
    if any(trial.kind == "imported" and by_report(trial.verdict.findings) for trial in scenario.trials):
        yield f"  {FILE}"
    yield from _faults(scenario)
    yield from _opinions(scenario)
    for trial in scenario.trials:
        for gap in trial.gaps:
            yield from style.fold(f"trial {trial.trial}: record not complete: {visible(gap)}", "  ", "    ")
        if trial.kept is not None:
            yield from style.fold(f"trial {trial.trial}: kept in {visible(trial.kept)}", "  ", "    ")


def _faults(scenario: ScenarioResult) -> Iterator[str]:
    """What became of the faults that were injected."""
    counts = [trial.verdict.faults for trial in scenario.trials if trial.verdict.faults is not None]
    if not counts:
        return
    met, spoilt = sum(count.met for count in counts), sum(count.spoilt for count in counts)
    if not met:
        yield "  injected faults: no call met one"
    else:
        recovered = sum(count.recovered for count in counts)
        yield f"  injected faults: {met} met, {spoilt} of them cost an answer, {recovered} of those recovered"


def _opinions(scenario: ScenarioResult) -> Iterator[str]:
    """What a judge thought, beside the verdicts."""
    count = count_opinions([trial.verdict for trial in scenario.trials])
    if count.asked:
        rate = rate_text(Rate(count.success, count.judged))
        failed = f", {count.failed} judge_failed" if count.failed else ""
        against = f", {count.against} against the verdict" if count.against else ""
        yield f"  judge ({visible(', '.join(count.judges))}): {rate} a success{failed}{against}"


def _told(trial: TrialResult) -> Verdict:
    return trial.verdict


def _explain_trials(which: str, verdict: Verdict, style: Style, *, many: bool) -> Iterator[str]:
    telling = [finding for finding in verdict.findings if finding.result != "pass"]
    # Where the agent came to its own end, the findings are the whole reason.
    alone = verdict.status != "completed" or not telling
    if many or alone:
        word = style.paint(verdict.result, WORDS[verdict.result].lower())
        reason = f": {visible(verdict.reason)}" if alone else ""
        yield from style.fold(f"{which}: {word} ({verdict.status}){reason}", "  ", "    ")
    for result, reason, ids in _alike(telling, verdict.status):
        word = style.paint(result, WORDS[result].lower())
        yield from style.fold(f"{word} {visible(', '.join(ids))}: {visible(reason)}", "    ", "      ")
    why = why_text(verdict)
    if why is not None:
        yield f"    why: {why}"
    for finding in verdict.findings:
        if finding.opinion is not None and finding.opinion.reasoning:
            thought = shortened(visible(finding.opinion.reasoning), THOUGHT)
            yield from style.fold(f"judge on {visible(finding.id)}: {thought}", "    ", "      ")


def _alike(findings: Sequence[Finding], status: Status) -> list[tuple[Result, str, list[str]]]:
    """Findings as lines: those that say the same are one. After a bad end what could not be told is one line too."""
    lines: dict[tuple[Result, str], list[str]] = {}
    for finding in findings:
        ended = finding.result == "not_run" and status != "completed"
        reason = f"cannot be told, since the trial ended as {status}" if ended else finding.reason
        lines.setdefault((finding.result, reason), []).append(finding.id)
    return [(result, reason, ids) for (result, reason), ids in lines.items()]
