"""A span file with bytes in it that are no span: nothing passes by it, and the rest of the run is judged."""

import json
from pathlib import Path
from shutil import copytree

import pytest
from click import Command
from click.testing import CliRunner, Result

from harness.commands.check import command as check
from harness.commands.export import command as export
from harness.commands.rejudge import command as rejudge
from harness.commands.trace import command as trace
from proxy.spans import JSON
from tests.harness.runs import run
from tests.harness.ticketing import GET, direct, ticketing
from tests.otlp.receiver import Received, http_receiver
from tests.otlp.sessions import spans_in, told

DAMAGE = {"foreign bytes": b"\xff\xfe\x00 foreign", "text": b"a note", "half a span": b'{"resourceSpans":[{"resource"'}
NOT_CALLED: JSON = [
    {"type": "tool_called", "tool": "mcp/ticketing/get_ticket"},
    {"type": "tool_not_called", "tool": "mcp/ticketing/delete_ticket"},
]


def played(command: Command, *arguments: object) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two trials that pass."""
    folder = tmp_path_factory.mktemp("whole")
    ran = run([ticketing(folder, direct(GET), assertions=NOT_CALLED)], folder, trials=2)
    assert [trial.verdict.result for trial in ran.result.trials] == ["pass", "pass"]
    return ran.folder


def damaged(whole: Path, folder: Path, line: bytes | None, place: int = 2) -> tuple[Path, Path]:
    """A copy of the run in which a line of the first trial's record is another one, or gone; and the file."""
    made = copytree(whole, folder / "run")
    (file,) = made.glob("*/1/spans/ticketing.*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    lines[place : place + 1] = [] if line is None else [line + b"\n"]
    file.write_bytes(b"".join(lines))
    return made, file


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_trial_whose_record_is_damaged_is_an_error_and_the_others_are_judged(
    kind: str, whole: Path, tmp_path: Path
) -> None:
    made, file = damaged(whole, tmp_path, DAMAGE[kind])
    shown = played(rejudge, made, "--format", "json")
    assert shown.exit_code == 1
    (scenario,) = json.loads(shown.stdout)["scenarios"]
    first, second = scenario["trials"]
    assert (first["result"], second["result"]) == ("error", "pass")
    said = f"{file}: line 3 is no JSON in UTF-8; put the file back as it was written, or take the line out"
    assert said in first["reason"]
    assert [said in gap for gap in first["gaps"]] == [True]
    assert first["findings"] == []


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_record_alone_is_refused_with_file_line_and_what_to_do(
    kind: str, whole: Path, tmp_path: Path
) -> None:
    made, file = damaged(whole, tmp_path, DAMAGE[kind])
    scenario = json.loads((made / "manifest.json").read_text())["scenarios"]["tickets"]["path"]
    for command, arguments in ((trace, (file,)), (trace, (made, "--trial", 1)), (check, ("--trace", file, scenario))):
        result = played(command, *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{file}: line 3 is no JSON in UTF-8; put the file back" in result.stderr
    assert played(trace, made, "--trial", 2).exit_code == 0


def test_a_record_without_one_of_its_lines_never_passes(whole: Path, tmp_path: Path) -> None:
    (file,) = whole.glob("*/1/spans/ticketing.*.jsonl")
    for place in range(len(file.read_bytes().splitlines())):
        made, _ = damaged(whole, tmp_path / str(place), None, place)
        (scenario,) = json.loads(played(rejudge, made, "--format", "json").stdout)["scenarios"]
        first, second = scenario["trials"]
        assert first["result"] != "pass"
        assert first["gaps"]
        assert second["result"] == "pass"


def test_an_export_sends_all_other_files_and_is_exit_code_2(whole: Path, tmp_path: Path) -> None:
    made, file = damaged(whole, tmp_path, DAMAGE["foreign bytes"])
    received = Received()
    with http_receiver(received) as url:
        result = played(export, made, "--otlp", url)
    assert result.exit_code == 2
    assert f"{file}: line 3 is no JSON in UTF-8" in result.stderr
    assert "the rest of the file is not sent" in result.stderr
    first = tmp_path / "first.jsonl"
    first.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
    others = [path for path in sorted(made.glob("*/*/spans/*.jsonl")) if path != file]
    assert told(received.spans) == told(spans_in(first, *others))
