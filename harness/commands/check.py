"""`wiretrap check [SCENARIO...] --trace FILE | --trace-dir DIR`: judge recorded traces without running anything.

Refuses to know what is judged and how.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from harness.arenafile import ArenaError, read_events, tokens
from harness.checked import Checked, CheckError, as_run
from harness.checking import check_trace, databases_of, missing_trace
from harness.commands.gating import gate_options, say_gate
from harness.commands.judging import judge_option, opened
from harness.commands.run import terminal_style
from harness.discovery import find_scenarios, load_scenarios
from harness.gate import Gate
from harness.jsontext import load_json
from harness.judges import Judge
from harness.locating import locate_assertions, repository_path
from harness.looseverdict import loose_verdict
from harness.places import text_of
from harness.recordedrun import trial_of
from harness.report.documents import FORMATS, Format, as_document
from harness.report.seen import matrix_lines
from harness.results import TrialResult
from harness.semantics import arena, owasp
from harness.targets.fixtures import fixture_offers
from harness.tracefolder import Located, Whose, locate_traces
from harness.verdict import Finding, Result, Verdict
from harness.written import Written
from proxy.problem import ProblemError
from proxy.visible import visible
from proxy.yamlfile import load_document

STRICT = "wiretrap"
"""Our own rules, the default of `--semantics`."""


def show(checked: Sequence[Checked], run_id: str, seconds: float, form: Format, gate: Gate, *, suite: bool) -> int:
    """Print the results; the exit code of a run with them."""
    run = replace(as_run(run_id, checked, seconds), gate=gate)
    click.echo(as_document(form, run, lambda: checked, suite=suite, style=terminal_style()), nl=False)
    for line in ("", *matrix_lines(run.targets)) if form == "text" and run.targets else ():
        click.echo(line)
    say_gate(run, apart=form != "text")
    return run.exit_code


def _databases(pairs: tuple[str, ...]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for pair in pairs:
        server, sign, file = pair.partition("=")
        if not sign or not server or not file:
            raise click.UsageError(f"--db {pair!r}: SERVER=FILE is expected")
        found[server] = Path(file)
    return found


def _strict(
    paths: Sequence[Path], trace: Path | None, folder: Path | None, databases: dict[str, Path], judge: Judge | None
) -> list[Checked]:
    scenarios = load_scenarios(paths, fixture_offers())
    if trace is not None:
        if len(scenarios) != 1:
            raise click.UsageError("--trace judges one scenario; of several, give the folder of their traces")
        return [check_trace(scenarios[0], trace, databases, judge)]
    assert folder is not None
    located = _located(folder, [Whose(one.id, one.category, one.path) for one in scenarios])
    checked = []
    for scenario in scenarios:
        found = located[scenario.id]
        if found.path is None:
            checked.append(missing_trace(scenario, _missing(scenario.id, folder, found)))
        else:
            checked.append(check_trace(scenario, found.path, {**databases_of(folder, scenario), **databases}, judge))
    return checked


def _located(folder: Path, scenarios: Sequence[Whose]) -> Mapping[str, Located]:
    """The traces of the folder; which was taken by another name than an id is said on stderr."""
    located = locate_traces(folder, scenarios)
    for found in located.values():
        if found.path is not None and found.note:
            click.echo(visible(found.note), err=True)
    return located


def _missing(name: str, folder: Path, found: Located) -> str:
    why = f"; {found.note}" if found.note else ""
    return f"there is no trace {folder / name}.json or .trace.json{why}"


def _as_owasp(paths: Sequence[Path], trace: Path | None, folder: Path | None) -> list[Checked]:
    scenarios: list[tuple[Path, owasp.OwaspScenario]] = []
    for path in find_scenarios(paths):
        try:
            scenarios.append((path, owasp.read_scenario(load_document(path.read_bytes(), str(path)).data)))
        except owasp.OwaspError as error:
            raise CheckError(f"{path}: {error}") from error
    if trace is not None and len(scenarios) != 1:
        raise click.UsageError("--trace judges one scenario; of several, give the folder of their traces")
    if folder is None:
        return [_owasp_verdict(path, scenario, trace, "") for path, scenario in scenarios]
    located = _located(folder, [Whose(scenario.id, scenario.category, path) for path, scenario in scenarios])
    return [
        _owasp_verdict(path, scenario, (found := located[scenario.id]).path, _missing(scenario.id, folder, found))
        for path, scenario in scenarios
    ]


def _owasp_verdict(path: Path, scenario: owasp.OwaspScenario, place: Path | None, missing: str) -> Checked:
    types = [str(assertion.get("type")) for assertion in scenario.assertions]

    def checked(verdict: Verdict, trace: owasp.OwaspTrace | None) -> Checked:
        result = TrialResult(scenario.id, 1, verdict, 0.0, "imported")
        said = None if trace is None else trace.as_json()
        return Checked(
            str(path),
            scenario.id,
            scenario.title,
            scenario.category,
            scenario.severity,
            result,
            said,
            None if place is None else str(place),
            written=locate_assertions(path, types, types),
        )

    if place is None:
        return checked(Verdict("error", "infra_error", missing), None)
    try:
        trace = owasp.read_trace(load_json(text_of(place)))
    except (OSError, ValueError) as error:
        raise CheckError(f"{place}: {error}") from error
    return checked(loose_verdict(scenario, trace), trace)


def _as_arena(path: Path) -> Checked:
    try:
        events = read_events(text_of(path), str(path))
        told = arena.grade_run(events)
    except (OSError, UnicodeDecodeError, ArenaError) as error:
        raise CheckError(f"{error}" if str(path) in str(error) else f"{path}: {error}") from error
    category = told.failure_category or "passed"
    measures: dict[str, float | None] = {
        name: float(value) for name, value in told.metrics.items() if isinstance(value, int | float)
    }
    tokens_in, tokens_out = tokens(events)
    measures |= {"score": told.score, "tokens_in": tokens_in, "tokens_out": tokens_out}
    result: Literal["pass", "fail"] = "pass" if told.passed else "fail"
    row = f"status {told.metrics['db_status']!r}"
    finding = Finding(
        told.task, result, f"{category}, score {told.score}, ticket ends with {row}", "reported", measures=measures
    )
    verdict = Verdict(result, "completed", finding.reason, (finding,))
    name = path.name.partition(".")[0]
    result_of = TrialResult(name, 1, verdict, 0.0, "imported")
    labels = {"architecture": told.architecture} if told.architecture else {}
    written = Written(repository_path(path))
    return Checked(str(path), name, told.task, "task", None, result_of, {}, str(path), labels, written)


def guarded(judged: Callable[[], list[Checked]]) -> list[Checked]:
    """The results; what is wrong with a file is said on stderr, and the exit code is 2."""
    try:
        return judged()
    except ProblemError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(2) from error
    except CheckError as error:
        click.echo(str(error), err=True)
        raise SystemExit(2) from error


@click.command("check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SCENARIO]...")
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="FILE", help="The trace, or the spans, of one scenario."
)
@click.option(
    "--trace-dir",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A folder of traces, each named by its scenario's id (ID.json, ID.trace.json) or as CATEGORY/NAME_pass.json.",
)
@click.option("--db", "databases", multiple=True, metavar="SERVER=FILE", help="A server's database after the run.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option(
    "--semantics",
    type=click.Choice([STRICT, arena.NAME, owasp.NAME]),
    default=STRICT,
    show_default=True,
    help="By whose rules it is judged.",
)
@judge_option
@gate_options
def command(
    paths: tuple[Path, ...],
    trace: Path | None,
    folder: Path | None,
    databases: tuple[str, ...],
    form: Format,
    semantics: str,
    judge_spec: str | None,
    min_pass_rate: float | None,
    fail_on: tuple[Result, ...],
) -> None:
    """Judge recorded traces without running anything.

    SCENARIO is a scenario, or a folder with all scenarios under it. The exit code is 0 when everything passes, 1 when
    not, 2 when the command, a scenario or a trace is wrong, and 3 when nothing could be judged.
    """
    began = time.monotonic()
    if (trace is None) == (folder is None):
        raise click.UsageError("give exactly one of --trace and --trace-dir")
    found = _databases(databases)
    if judge_spec is not None and semantics != STRICT:
        raise click.UsageError(f"--semantics {semantics} asks no judge")
    judge = opened(judge_spec)
    if semantics == arena.NAME:
        if paths or found:
            raise click.UsageError(
                f"--semantics {arena.NAME} takes no scenario and no database: the task is in the trace"
            )
        traces = [trace] if trace is not None else sorted(folder.glob("*.jsonl")) if folder is not None else []
        checked = guarded(lambda: [_as_arena(path) for path in traces])
    elif not paths:
        raise click.UsageError("name a scenario, or a folder of them")
    elif semantics == owasp.NAME:
        if found:
            raise click.UsageError(f"--semantics {owasp.NAME} looks at no database")
        checked = guarded(lambda: _as_owasp(paths, trace, folder))
    else:
        checked = guarded(lambda: _strict(paths, trace, folder, found, judge))
        trial = None if trace is None else trial_of(trace)
        if trial is not None and any(trial.path.glob("state/*.after.jsonl")):
            run = trial.path.parent.parent
            said = f"what the servers' databases held is not looked at here; `wiretrap rejudge {run}` does"
            click.echo(visible(said), err=True)
    gate = Gate(min_pass_rate, frozenset(fail_on))
    raise SystemExit(show(checked, "check", time.monotonic() - began, form, gate, suite=folder is not None))
