"""Labels by hand: a file that says of trials of a run whether they were a success, and the opinions that stand there.

Refuses to know what is made of both.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from harness.intake import Entry, Intake, open_document
from harness.opinion import Opinion
from harness.opinions import read_opinions
from proxy.problem import Problem, ProblemError, describe
from proxy.spans import JSON


class LabelError(ProblemError):
    """Labels that cannot be used with a run; `problems` has everything that is wrong."""


class Label(Entry):
    """What a person says of one trial. `assertion` is the id of the judged assertion, where the trial has several."""

    scenario: str = Field(min_length=1)
    trial: int = Field(ge=1)
    success: int = Field(ge=0, le=1)
    assertion: str | None = None


def read_labels(path: Path) -> tuple[Label, ...]:
    """The labels of a YAML or JSON file, a list. Raises LabelError."""
    problems: list[Problem] = []
    labels: list[Label] = []
    document = open_document(path, problems)
    if document is not None:
        intake = Intake(document)
        data = document.data
        if not isinstance(data, list) or not data:
            intake.wrong((), f"expected a list of labels such as {{scenario: ID, trial: 1, success: 1}}, "
                             f"not {'an empty list' if data == [] else describe(data)}")  # fmt: skip
        for place, item in enumerate(data if isinstance(data, list) else []):
            label = intake.read(Label, item, (place,))
            if label is None:
                continue
            if any((one.scenario, one.trial, one.assertion) == (label.scenario, label.trial, label.assertion)
                   for one in labels):  # fmt: skip
                intake.wrong((place,), "this trial has a label already")
            labels.append(label)
        problems += intake.problems
    if problems:
        raise LabelError(problems)
    return tuple(labels)


def pair_up(labels: Sequence[Label], run: Path, where: str) -> list[tuple[Label, Opinion]]:
    """Each label with the opinion on its trial, of verdict.json in the run folder. Raises LabelError.

    `where` is the name of the labels' file.
    """
    problems: list[Problem] = []
    found: dict[tuple[str, int, str], tuple[Label, Opinion]] = {}
    for place, label in enumerate(labels):
        told = _opinion(label, run)
        if isinstance(told, str):
            problems.append(Problem(where, None, f"[{place}]", told))
            continue
        name, opinion = told
        # With and without its name, the one opinion of a trial is the same.
        if (label.scenario, label.trial, name) in found:
            problems.append(
                Problem(where, None, f"[{place}]", f"the opinion {name!r} of this trial has a label already")
            )
        found[label.scenario, label.trial, name] = (label, opinion)
    if problems:
        raise LabelError(problems)
    return list(found.values())


def _opinion(label: Label, run: Path) -> tuple[str, Opinion] | str:
    """The opinion and the id of its finding, or why there is none."""
    folder = run / label.scenario
    path = folder / str(label.trial) / "verdict.json"
    if folder.parent != run or not path.is_file():
        return f"{run.name} has no trial {label.trial} of {label.scenario!r}"
    try:
        told: JSON = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"{path}: cannot be read: {error}"
    opinions = read_opinions(told if isinstance(told, dict) else {})
    if label.assertion is not None:
        opinion = opinions.get(label.assertion)
        wanted = f"the trial has no opinion {label.assertion!r}; it has: {', '.join(opinions) or 'none'}"
        return wanted if opinion is None else (label.assertion, opinion)
    if len(opinions) == 1:
        return next(iter(opinions.items()))
    if not opinions:
        return f"no judge was asked about trial {label.trial} of {label.scenario!r}; `wiretrap run --judge` asks one"
    return f"the trial has several opinions ({', '.join(opinions)}); say which by `assertion`"
