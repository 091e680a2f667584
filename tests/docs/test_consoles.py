"""What a page shows that a command prints, the command prints."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from proxy.spanread import read_spans
from proxy.spans import SERVER, Attribute, Span
from tests.docs.pages import BLOCKS, DOCS, PAGES, ROOT, Block

FILES_FROM = {
    "walk.md": ROOT / "README.md",
    "verdicts.md": ROOT / "README.md",
    "targets.md": DOCS / "own.md",
}
"""Pages that go on with the files of another one."""
NOT_RUN = ("make", "git", "source", "cd", "pip")
"""Commands of a console block that would set something up; of `make` the target must be there."""


def folder_of(page: Path, folder: Path) -> Path:
    """The page's folder: all files that it, and the page before it, write."""
    for source in (FILES_FROM.get(page.name), page):
        for block in BLOCKS:
            if block.page == source and block.name:
                file = folder / block.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Command:
    block: Block
    line: str
    output: str


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    for block in BLOCKS:
        if block.page == page and block.language == "console":
            parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
            assert parts[0] == "", f"{block}: a console block begins with a command"
            found += [Command(block, *pair) for pair in zip(parts[1::2], parts[2::2], strict=True)]
    return found


def pattern(text: str) -> re.Pattern[str]:
    """What a person may leave out is `...`: any text, in a line or over lines."""
    return re.compile(".*?".join(re.escape(part) for part in text.rstrip("\n").split("...")), re.DOTALL)


def does_fit(claimed: str, found: str) -> bool:
    return pattern(claimed).fullmatch(found.rstrip("\n")) is not None


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_what_a_page_says_that_a_command_prints_it_prints(page: Path, tmp_path: Path) -> None:
    folder = folder_of(page, tmp_path)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NO_COLOR": "1",
        "LC_ALL": "C",
    }
    code = 0
    for command in commands(page):
        if command.line.split()[0] in NOT_RUN:
            continue
        if command.line == "echo $?":
            printed = str(code)
        else:
            run = subprocess.run(
                ["bash", "-c", command.line],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
            code, printed = run.returncode, run.stdout.decode()
        assert does_fit(command.output, printed), f"{command.block}: $ {command.line}\n{printed}"
    shown = [block for block in BLOCKS if block.page == page and block.words == ("span",)]
    if shown:
        spans = [as_text(span) for span in read_spans(sorted(folder.glob("*/*/*/*/spans")), print)]
        for block in shown:
            assert any(does_show(block.text, span) for span in spans), f"{block}: no such span:\n" + "\n\n".join(spans)


def does_show(claimed: str, span: str) -> bool:
    """Whether each line is one of the span's, in any order: that of attributes means nothing."""
    lines = [line for line in claimed.splitlines() if line != "..."]
    return all(any(does_fit(line, found) for found in span.splitlines()) for line in lines)


def as_text(span: Span) -> str:
    def show(value: Attribute) -> str:
        return json.dumps(value) if isinstance(value, bool) else str(value)

    lines = [f"name: {span.name}", f"kind: {'SERVER' if span.kind == SERVER else 'INTERNAL'}"]
    return "\n".join([*lines, *(f"{key}: {show(value)}" for key, value in span.attributes.items())])


def test_every_file_of_a_page_is_used_by_a_command_of_it() -> None:
    for page in PAGES:
        named = [block for block in BLOCKS if block.page == page and block.name]
        lines = [command.line for command in commands(page)]
        for block in named:
            told = [line for line in lines if block.name in line]
            inside = [other for other in named if block.name in other.text and other is not block]
            assert told or inside, f"{block}: no command of the page uses {block.name}"
