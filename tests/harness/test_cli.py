import sys

import pytest

from harness.cli import COMMANDS, main


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
