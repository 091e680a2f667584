"""Folders of spans, and `wiretrap trace` over them."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from harness.commands.trace import command
from proxy import vocabulary as v
from proxy.spans import Span, encode_span
from tests.harness.wire import Wire


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def write(path: Path, spans: list[Span]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{encode_span(span, '0')}\n" for span in spans))
    return path


def run_folder(tmp_path: Path) -> Path:
    names = Wire().names
    for scenario, trial in (("a", 1), ("a", 2), ("b", 1)):
        wire = Wire(connection=f"{scenario}{trial}", names=names)
        wire.extra = {v.RUN_ID: "r", v.SCENARIO_ID: scenario, v.TRIAL: trial}
        write(tmp_path / "run" / scenario / str(trial) / "spans" / "s.jsonl", wire.call(f"{scenario}{trial}").spans)
    return tmp_path / "run"


def tools(result: Result) -> list[str]:
    return [call["mcp_tool_name"] for call in json.loads(result.stdout)["tool_calls"]]
