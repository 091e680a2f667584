"""Every command, option, exit code, variable and file of a run is documented, and no other."""

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from harness import cli
from harness.results import RunResult, ScenarioResult, TrialResult
from harness.runfolder import RESERVED, TrialFolder
from harness.verdict import Result, Status, Verdict
from proxy import cli as proxy_cli
from proxy.connectserve import RECORD_FAILED as CONNECT_RECORD_FAILED
from proxy.context import Context
from proxy.httpserve import RECORD_FAILED as HTTP_RECORD_FAILED
from proxy.stdio import RECORD_FAILED
from tests.docs.pages import ROOT, TEXTS, first_cells, section, ticked


def command_of(name: str) -> click.Command:
    if name.startswith("proxy "):
        return proxy_cli.proxy.commands[name.removeprefix("proxy ")]
    found = import_module(f"harness.commands.{cli.MODULES.get(name, name)}").command
    assert isinstance(found, click.Command)
    return found


ALL_COMMANDS = ("proxy stdio", "proxy http", "proxy forward", "proxy bridge", "proxy connect", *cli.COMMANDS)


def test_every_command_has_a_section() -> None:
    named = set(re.findall(r"^## wiretrap (.+)$", TEXTS["commands.md"], re.MULTILINE))
    proxies = {f"proxy {name}" for name in proxy_cli.proxy.commands}
    assert named == {*proxies, *cli.COMMANDS}
    assert {"--version", "--help"} <= ticked(section("commands.md", "wiretrap"))


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_option_of_a_command_is_in_its_section_and_no_other(name: str) -> None:
    command = command_of(name)
    context = click.Context(command, help_option_names=["-h", "--help"])
    options = {
        max(parameter.opts, key=len) for parameter in command.get_params(context) if isinstance(parameter, click.Option)
    }
    told = {cell.split()[0] for cell in first_cells(section("commands.md", f"wiretrap {name}")) if cell.startswith("-")}
    assert told == options


def test_every_field_of_a_context_file_is_named() -> None:
    assert set(Context._fields) <= set(first_cells(section("commands.md", "wiretrap proxy stdio")))


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("proxy stdio", {"2", str(RECORD_FAILED), "126", "127"}),
        ("proxy http", {"0", "2", str(HTTP_RECORD_FAILED)}),
        ("proxy bridge", {"0", "2", str(HTTP_RECORD_FAILED), "126", "127"}),
        ("proxy connect", {"0", "2", str(CONNECT_RECORD_FAILED)}),
        ("proxy forward", {"0", "2", str(HTTP_RECORD_FAILED)}),
        ("run", {"0", "1", "2", "3", "130"}),
        ("check", {"0", "1", "2", "3"}),
        ("compare", {"0", "1", "2", "3"}),
        ("import", {"0", "2"}),
        ("rejudge", {"0", "1", "2", "3"}),
        ("targets", {"0", "2"}),
        ("trace", {"0", "2", "130"}),
        ("export", {"0", "1", "2"}),
        ("schema", {"0", "2"}),
        ("selfcheck", {"0", "1", "2", "3", "130"}),
        ("sweep", {"0", "1", "2", "3", "130"}),
        ("validate", {"0", "2"}),
        ("approve", {"0", "1", "2", "130"}),
        ("up", {"0", "1", "2", str(HTTP_RECORD_FAILED)}),
        ("wrap", {"0", "1", "2"}),
    ],
)
def test_every_exit_code_is_named(name: str, codes: set[str]) -> None:
    told = set(re.findall(r"^\| (\d+) \|", section("commands.md", f"wiretrap {name}"), re.MULTILINE))
    assert told == codes


def test_the_exit_codes_of_a_run_are_those_that_the_page_names() -> None:
    def code(result: Result, status: Status, *, cancelled: bool = False) -> int:
        trial = TrialResult("s", 1, Verdict(result, status, ""), 0.0, "scripted")
        return RunResult("r", (ScenarioResult("s", "", "task", (trial,)),), 0.0, cancelled).exit_code

    assert code("pass", "completed") == 0
    assert code("fail", "limit") == 1
    assert code("error", "infra_error") == 3
    assert code("error", "cancelled", cancelled=True) == 130


def test_every_variable_of_the_environment_is_named() -> None:
    used = {
        name
        for room in ("proxy", "harness", "servers")
        for file in (ROOT / room).rglob("*.py")
        for name in re.findall(
            r'["\'](WIRETRAP_[A-Z_]*[A-Z]|XDG_[A-Z_]+|NO_COLOR)["\']', file.read_text(encoding="utf-8")
        )
    } - {"WIRETRAP_ROOM"}
    assert used <= ticked(TEXTS["commands.md"])


def test_every_file_of_a_run_folder_is_named() -> None:
    tree = section("commands.md", "The run folder")
    folder = TrialFolder(Path("trial"))
    files = [folder.spans, folder.trace, folder.verdict, folder.output, folder.errors]
    files += [folder.state("SERVER", moment) for moment in ("before", "after", "journal")]
    for name in RESERVED - {".", ".."} | {file.name for file in files}:
        assert name in tree
