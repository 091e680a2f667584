"""Finds where scenarios are written, for reports that point into their files.

Refuses to know what a scenario means.
"""

from collections.abc import Sequence
from pathlib import Path

from harness.intake import open_document
from harness.judge import finding_names
from harness.scenario import Scenario
from harness.written import Place, Written
from proxy.problem import Problem


def locate(scenario: Scenario) -> Written:
    """Where the scenario is written; where its file cannot be read any more, all of it stands in line 1."""
    names = finding_names(scenario.assertions)
    return locate_assertions(scenario.path, names, [assertion.type for assertion in scenario.assertions])


def locate_assertions(path: Path, findings: Sequence[str], types: Sequence[str]) -> Written:
    """The same of a file whose assertions have findings of these names, and these types, in order."""
    problems: list[Problem] = []
    document = open_document(path, problems)
    if document is None:
        return Written(repository_path(path))
    places = (
        Place(finding, kind, document.line(("assertions", number)))
        for number, (finding, kind) in enumerate(zip(findings, types, strict=True))
    )
    return Written(repository_path(path), document.line(("id",)), tuple(places))


def repository_path(path: Path) -> str:
    """The path from the root of the repository that the file is in; outside of one, from here, else its name alone."""
    file = path.absolute()
    above = next((folder for folder in file.parents if (folder / ".git").exists()), Path.cwd())
    return file.relative_to(above).as_posix() if file.is_relative_to(above) else file.name
