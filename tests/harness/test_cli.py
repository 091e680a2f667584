import subprocess
import sys

import pytest

from harness.cli import COMMANDS, main
from proxy import __version__


def told(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["wiretrap", *arguments])
    try:
        main()
    except SystemExit as end:
        return end.code
    return 0


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_shows_its_help(
    flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([], ["proxy"], ["proxy", "stdio"], *([name] for name in COMMANDS)):
        assert told([*words, flag], monkeypatch) == 0
        assert capsys.readouterr().out.startswith(" ".join(["Usage: wiretrap", *words]))


def test_no_command_and_an_unknown_one_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told([], monkeypatch) == 2
    assert "Commands:" in capsys.readouterr().err
    assert told(["nonsense"], monkeypatch) == 2
    assert "there is no command 'nonsense'" in capsys.readouterr().err


def test_a_proxy_that_there_is_not_is_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(["proxy", "nonsense"], monkeypatch) == 2
    assert "No such command 'nonsense'" in capsys.readouterr().err


def test_the_module_is_the_command_where_there_is_no_console_script() -> None:
    def said(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-P", "-m", "harness.cli", *arguments]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout

    assert said("--version") == (0, f"wiretrap {__version__}\n")
    assert said("no-such-command") == (2, "")


@pytest.mark.parametrize("moment", ["import_module", "_play"])
def test_ctrl_c_ends_a_command_with_130_and_no_traceback(
    moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"harness.cli.{moment}", interrupt)
    assert told(["validate", "."], monkeypatch) == 130
    assert capsys.readouterr().err == ""


def test_ctrl_c_inside_a_command_ends_it_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.commands.run.load_selection", interrupt)
    assert told(["run", "."], monkeypatch) == 130
    assert capsys.readouterr().err.strip() == ""


def test_a_wrong_option_is_told_with_its_usage_and_exits_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(["validate", "--nonsense"], monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.startswith("Usage: wiretrap validate")
    assert "--nonsense" in said
