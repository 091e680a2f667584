"""`wiretrap approve` where there is no desk and no terminal; live answers are in test_approve_process.py."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.approve import command


def said(*arguments: str, code: str = "") -> tuple[int, str]:
    ended = CliRunner().invoke(command, arguments, input=code)
    return ended.exit_code, ended.output


def test_a_desk_without_a_terminal_does_not_start_and_makes_nothing(tmp_path: Path) -> None:
    exit_code, output = said("listen", str(tmp_path / "desk"))
    assert exit_code == 2
    assert "stdout is none" in output
    assert not (tmp_path / "desk").exists()


@pytest.mark.parametrize("words", [("list",), ("grant", "id"), ("deny", "id")])
def test_where_no_desk_is_the_folder_is_named_and_what_makes_it(words: tuple[str, ...], tmp_path: Path) -> None:
    folder = str(tmp_path / "desk")
    exit_code, output = said(words[0], folder, *words[1:], code="code\n")
    assert exit_code == 1
    assert f"wiretrap approve listen {folder}" in output
    (tmp_path / "desk").mkdir(0o700)
    exit_code, output = said(words[0], folder, *words[1:], code="code\n")
    assert exit_code == 1
    assert "nobody listens there" in output


def test_a_grant_is_revoked_once_and_one_that_there_is_not_is_told(tmp_path: Path) -> None:
    file = tmp_path / "g.yaml"
    grant = {"id": "g", "tool": "mcp/x/pay", "arguments": {}, "expires_at": "2100-01-01T00:00:00Z"}
    file.write_text(json.dumps([grant]))
    assert said("revoke", str(file), "g") == (0, "the grant g is revoked\n")
    assert said("revoke", str(file), "g") == (0, "the grant g was revoked already\n")
    exit_code, output = said("revoke", str(file), "h")
    assert exit_code == 1
    assert "there is no grant 'h'; there are g" in output
    file.write_text("{}")
    assert said("revoke", str(file), "g")[0] == 1
