"""Whatever a file or a name of one is, a command says what is wrong and exits with 2, and never with a traceback."""

import json
import os
from importlib import import_module
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner, Result

from proxy.spans import JSON
from tests.harness.runs import write_scenario

PATHS = {
    "U+0000": "a\0",
    "too long": "x" * 300,
    "a folder": "folder",
    "a pipe": "pipe",
    "a link to itself": "round",
    "behind a file": "plain/x",
    "nothing": "none.yaml",
}
DEEP = {"2,000 maps": '{"a":' * 2000 + "1" + "}" * 2000, "100,000 lists": "[" * 100_000, "open": "{", "empty": ""}


def fields(name: str) -> dict[str, tuple[str, JSON]]:
    """A file of each kind with the name in each of its fields that is a path, and the command that reads it."""
    model: JSON = {"provider": "scripted", "script": name}
    other: JSON = {"tasks": ["small.yaml"], "agents": {"a": "plain"}, "models": {"m": model}}
    return {
        "script": ("run", {"model": model}),
        "script of one": ("run", {"model": {"provider": "scripted", "script": "plain"}, "models": {"a": model}}),
        "trace": ("run", {"trace": name}),
        "seed": ("validate", scenario(servers={"t": {"fixture": "ticketing", "seed": name}})),
        "policy": ("validate", scenario(policy={"file": name})),
        "agent": ("validate", scenario(agent={"scripted": name})),
        "agent's trace": ("validate", scenario(agent={"trace": name, "x": 1})),
        "tasks": ("sweep", {"tasks": [name], "agents": {"a": "plain"}}),
        "agents": ("sweep", {"tasks": ["small.yaml"], "agents": {"a": name}}),
        "agents by task": ("sweep", {"tasks": ["small.yaml"], "agents": {"a": {"small": name}}}),
        "a sweep's models": ("sweep", other),
        "up policy": ("validate", {"servers": {"a": {"command": ["x"]}}, "policy": {"file": name}}),
        "up grants": ("validate", {"servers": {"a": {"command": ["x"]}}, "grants": name}),
    }


def scenario(**more: JSON) -> JSON:
    said: dict[str, JSON] = {"id": "s", "title": "t", "category": "task", "input": {"user_message": "x"}}
    return {**said, "assertions": [{"type": "no_denied_tool_call"}], **more}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with something of each kind in it, where we are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "plain").write_text("")
    os.mkfifo(tmp_path / "pipe")
    write_scenario(tmp_path, servers=None)
    return tmp_path


def played(name: str, *arguments: str) -> Result:
    command = import_module(f"harness.commands.{name}").command
    assert isinstance(command, Command)
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, SystemExit | None), (arguments, result.exception)
    return result


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.usefixtures("folder")
def test_a_name_in_a_file_that_leads_nowhere_is_said_with_the_file(kind: str) -> None:
    for field, (command, document) in fields(PATHS[kind]).items():
        Path("it.yaml").write_text(json.dumps(document))
        runs = {"run": ("small.yaml", "--agent", "it.yaml"), "validate": ("it.yaml",), "sweep": ("it.yaml",)}
        for name in {command, "validate"}:
            result = played(name, *runs[name])
            if name == command:
                assert (field, result.exit_code) == (field, 2), result.output
                assert "cannot" in result.stderr or ": " in result.stderr


def broken(folder: Path, text: str) -> list[tuple[str, ...]]:
    """Every command that reads JSON, on files that hold this text."""
    run = folder / "folder"
    for name in ("manifest.json", "report.json", "results.ndjson", "trace.json", "some.jsonl"):
        (run / name).write_text(text)
    whole, trace, lines = str(run), str(run / "trace.json"), str(run / "some.jsonl")
    return [
        ("compare", whole, whole),
        ("rejudge", whole),
        ("targets", whole),
        ("trace", trace),
        ("trace", lines),
        ("check", "small.yaml", "--trace", trace),
        ("check", "--semantics", "agent-arena", "--trace", lines),
        ("run", "--resume", whole),
        ("judge_agreement", trace, whole),
        *(("import_runs", form, trace, "--out", str(folder)) for form in ("agent-arena", "agent-mark", "owasp")),
        ("validate", trace),
        ("export", lines, "--otlp", "http://127.0.0.1:9"),
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("kind", DEEP)
def test_json_that_cannot_be_read_is_said_with_the_file(kind: str, folder: Path) -> None:
    for name, *arguments in broken(folder, DEEP[kind]):
        result = played(name, *arguments)
        # A record of spans may end in the middle of a line.
        torn = name in ("trace", "check") and result.exit_code != 2
        assert torn or result.exit_code == 2, (name, arguments, result.output)


@pytest.mark.usefixtures("folder")
def test_a_path_on_the_command_line_may_be_anything() -> None:
    for name in ("validate", "run", "check", "compare", "rejudge", "trace", "export", "sweep", "selfcheck", "targets"):
        more = {"check": ("--trace", "small.yaml"), "compare": ("small.yaml",), "export": ("--otlp", "http://h:9")}
        for path in ("x" * 300, "folder", "pipe", "round", "plain/x"):
            result = played(name, path, *more.get(name, ()))
            assert (name, path, result.exit_code) == (name, path, 2), result.output
