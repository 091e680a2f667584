import json
from pathlib import Path

from click.testing import CliRunner

from harness.commands.compare import command
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.verdict import Result, Status, Verdict

PASSES: tuple[Result, ...] = ("pass",) * 5
ERRORS: tuple[Status, ...] = ("infra_error", "harness_error", "cancelled")
FAILURES: tuple[Result, ...] = ("fail",) * 5


def report(path: Path, *results: Result, status: Status = "completed") -> Path:
    scenarios = tuple(
        ScenarioResult(f"s{n}", "", "task", (TrialResult(f"s{n}", 1, Verdict(one, status, ""), 0.0, "real"),))
        for n, one in enumerate(results)
    )
    path.write_text(json.dumps(RunResult("r", scenarios, 0.0).as_json()))
    return path


def code(*arguments: object) -> int:
    return CliRunner().invoke(command, [str(argument) for argument in arguments]).exit_code


def test_the_gate_fails_on_a_significant_loss_or_a_named_result(tmp_path: Path) -> None:
    good, bad = report(tmp_path / "a", *PASSES, "pass"), report(tmp_path / "b", *FAILURES, "fail")
    one = report(tmp_path / "c", "fail", *PASSES)
    assert (code(good, good), code(good, bad), code(bad, good), code(good, one)) == (0, 1, 0, 0)
    assert code(good, one, "--fail-on", "fail") == 1
    assert code(one, one, "--fail-on", "fail") == 0


def test_what_is_no_report_exits_2_and_runs_without_a_pair_exit_3(tmp_path: Path) -> None:
    good = report(tmp_path / "a", "pass")
    (tmp_path / "x").write_text("[]")
    assert (code(good, tmp_path / "x"), code(good, tmp_path)) == (2, 2)
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1" / "manifest.json").touch()
    named = CliRunner().invoke(command, [str(tmp_path), str(good)])
    assert (named.exit_code, f"name one in it, such as {tmp_path / 'r1'}" in named.stderr) == (2, True)
    assert code(good, report(tmp_path / "d", "error", status="infra_error")) == 3


def test_the_gate_fails_on_what_the_new_run_does_not_have_unless_that_is_allowed(tmp_path: Path) -> None:
    whole, part = report(tmp_path / "a", "pass", "pass", "fail"), report(tmp_path / "b", "pass")
    told = CliRunner().invoke(command, [str(whole), str(part)])
    assert told.exit_code == 1
    assert "NEW lacks 2 trials that BASE has:\n  s1 trial 1\n  s2 trial 1\n" in told.stdout
    assert (code(part, whole), code(whole, part, "--allow-missing")) == (0, 0)


def test_trials_that_are_not_there_are_named_by_their_scenario(tmp_path: Path) -> None:
    passed = Verdict("pass", "completed", "")
    paths = []
    for name, count in (("a", 3), ("b", 1)):
        trials = tuple(TrialResult("s", number + 1, passed, 0.0, "real") for number in range(count))
        (tmp_path / name).write_text(
            json.dumps(RunResult("r", (ScenarioResult("s", "", "task", trials),), 0.0).as_json())
        )
        paths.append(str(tmp_path / name))
    assert "  s trial 2, 3\n" in CliRunner().invoke(command, paths).stdout


def test_json_has_all_of_it(tmp_path: Path) -> None:
    paths = [str(report(tmp_path / "a", "pass", "fail")), str(report(tmp_path / "b", "pass", "pass"))]
    told = json.loads(CliRunner().invoke(command, [*paths, "--format", "json"]).stdout)
    assert (told["won"], told["verdict"], told["changes"][0]["scenario"]) == (1, "no difference shown", "s1")


def test_a_loss_that_may_be_chance_is_counted_and_the_gate_that_sees_it_is_named(tmp_path: Path) -> None:
    paths = []
    for name, result in (("a", "pass"), ("b", "fail")):
        verdict = Verdict("pass" if result == "pass" else "fail", "completed", "")
        trials = tuple(TrialResult("s", number, verdict, 0.0, "real") for number in (1, 2))
        run = RunResult("r", (ScenarioResult("s", "", "task", trials),), 0.0)
        (tmp_path / name).write_text(json.dumps(run.as_json()))
        paths.append(str(tmp_path / name))
    told = CliRunner().invoke(command, paths)
    assert told.exit_code == 0
    assert "passed: 2 -> 0 (-100.0 percentage points); 2 lost, 0 won\n" in told.stdout
    assert "over scenarios like these it is not known: one scenario has no spread between scenarios\n" in told.stdout
    assert "`--fail-on fail`" in told.stdout
    assert code(*paths, "--fail-on", "fail") == 1


def test_a_trial_that_the_new_run_alone_has_is_named_and_can_fail_the_gate(tmp_path: Path) -> None:
    base, more = report(tmp_path / "a", "pass"), report(tmp_path / "b", "pass", "fail", "not_run")
    told = CliRunner().invoke(command, [str(base), str(more), "--fail-on", "fail"])
    assert told.exit_code == 1
    assert "2 trials that NEW alone has:\n  s1 trial 1: fail\n  s2 trial 1: not_run\n" in told.stdout
    assert (code(base, more), code(base, more, "--fail-on", "error")) == (0, 0)


def test_the_last_line_says_whether_the_gate_holds_and_why_not(tmp_path: Path) -> None:
    def last(*arguments: object) -> str:
        return CliRunner().invoke(command, [str(argument) for argument in arguments]).stdout.splitlines()[-1]

    base, fewer = report(tmp_path / "a", "pass", "pass", "pass"), report(tmp_path / "b", "pass", "pass")
    lost = report(tmp_path / "c", "pass", "pass", "fail")
    assert last(base, base) == "gate: holds"
    assert last(base, lost) == "gate: holds"
    assert last(base, lost, "--fail-on", "fail") == "gate: does not hold: 1 trial came to fail (--fail-on fail)"
    lacks = "gate: does not hold: NEW lacks 1 trial that BASE has (--allow-missing lets that be)"
    assert last(base, fewer) == lacks
    assert last(base, fewer, "--allow-missing") == "gate: holds"
    six = report(tmp_path / "d", *PASSES, "pass"), report(tmp_path / "e", *FAILURES, "fail")
    assert last(*six) == "gate: does not hold: NEW is significantly worse"
    assert "(-33.3 percentage points)" in CliRunner().invoke(command, [str(base), str(lost)]).stdout


def test_a_trial_that_became_an_error_is_named_and_fails_the_gate_like_one_that_is_not_there(tmp_path: Path) -> None:
    good = report(tmp_path / "a", "pass", "fail", "pass")
    for status in ERRORS:
        trials: tuple[tuple[Result, Status], ...] = (("error", status), ("fail", "completed"), ("pass", "completed"))
        scenarios = tuple(
            ScenarioResult(f"s{n}", "", "task", (TrialResult(f"s{n}", 1, Verdict(result, ended, ""), 0.0, "real"),))
            for n, (result, ended) in enumerate(trials)
        )
        new = tmp_path / "b"
        new.write_text(json.dumps(RunResult("r", scenarios, 0.0).as_json()))
        told = CliRunner().invoke(command, [str(good), str(new)])
        assert told.exit_code == 1
        named = "1 trial of which BASE says something ended as an error in NEW:\n  s0 trial 1: pass -> error\n"
        assert named in told.stdout
        allowed = ("--allow-missing",)
        assert (code(good, new, *allowed), code(good, new, *allowed, "--fail-on", "error")) == (0, 1)
        # What was an error before says nothing that could be lost.
        assert (code(new, new), code(new, new, "--fail-on", "error"), code(new, good)) == (0, 0, 0)
