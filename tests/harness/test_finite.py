import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.commands.check import command as check
from harness.commands.rejudge import command as rejudge
from harness.commands.run import command as run
from harness.finite import finite
from harness.intake import Entry, Intake
from harness.modelagent import PricesEntry
from harness.models.script import FailEntry
from harness.scenariofile import LimitsEntry
from harness.tracefile import load_trace
from harness.traceread import TraceFileError
from proxy.spans import JSON
from proxy.yamlfile import load_document


@pytest.mark.parametrize("command", [run, check, rejudge])
@pytest.mark.parametrize("share", ["nan", "NaN", "-nan", "inf", "-inf", "1e999"])
def test_a_share_that_is_no_finite_number_is_a_usage_error_of_every_gate(command: click.Command, share: str) -> None:
    shown = CliRunner().invoke(command, [f"--min-pass-rate={share}", "."])
    assert (shown.exit_code, "'--min-pass-rate'" in shown.stderr, "range" in shown.stderr) == (2, True, True)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("model", "field"), [(LimitsEntry, "seconds"), (PricesEntry, "input"), (FailEntry, "retry_after")]
)
def test_no_entry_of_a_file_takes_a_number_that_is_not_finite(model: type[Entry], field: str, value: float) -> None:
    intake = Intake(load_document(b"{}", "a.yaml"))
    assert intake.read(model, {"status": 500, field: value}, ()) is None
    assert f"a.yaml:1: {field}: expected a finite number" in "\n".join(map(str, intake.problems))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_trace_of_ours_with_a_number_that_json_lacks_is_refused_with_its_field(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.json"
    call = f'{{"name": "a", "arguments": {{}}, "seq": 1, "outcome": "ok", "duration_ms": {text}}}'
    lists = f'"messages": [], "tool_calls": [{call}], "events": []'
    coverage = json.dumps(dict.fromkeys(("messages", "tool_calls", "results", "events", "state"), "wire"))
    file.write_text(f'{{"schema_version": 1, "coverage": {coverage}, {lists}}}')
    with pytest.raises(TraceFileError, match=r"t\.json.*duration_ms.*finite"):
        load_trace(file)


@given(st.floats() | st.integers() | st.booleans() | st.text())
def test_a_finite_number_is_itself_and_all_else_is_none(value: JSON) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0
    assert finite(value) == (value if number and abs(value) < 2**1000 else finite(value) if number else None)


def test_a_whole_number_past_every_float_is_none() -> None:
    assert finite(10**400) is None
