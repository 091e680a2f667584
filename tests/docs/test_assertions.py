"""Every assertion and field of one, what a judge is asked, and every word of a verdict are documented."""

import re
from typing import get_args

import pytest
from pydantic import BaseModel

from harness.assertions.assertion import Assertion
from harness.assertions.calls import Counts
from harness.assertions.claims import Claim
from harness.assertions.matcher import ExpectedCall
from harness.assertions.not_built import BUILT, NotBuilt
from harness.assertions.state import Exemption
from harness.judgemodel import DEFAULT
from harness.judges import SECONDS
from harness.labels import Label
from harness.models.provided import KEYS
from harness.opinion import RESULTS, SHOWN
from harness.results import Kind, TrialResult
from harness.verdict import FailureCategory, Finding, Mode, Rests, Result, Status, Verdict
from tests.docs.pages import TEXTS, fields, first_cells, section, ticked, words_of

ASSERTIONS: dict[str, type[BaseModel]] = {
    str(get_args(model.model_fields["type"].annotation)[0]): model
    for model in (get_args(item)[0] for item in get_args(get_args(Assertion)[0]))
    if model is not NotBuilt
}


def test_every_assertion_has_a_section() -> None:
    assert set(ASSERTIONS) == BUILT
    headings = set(re.findall(r"^### `([a-z_]+)`$", TEXTS["scenario.md"], re.MULTILINE))
    assert headings == BUILT | {"state_unexplained"}


@pytest.mark.parametrize("name", sorted(BUILT))
def test_every_field_of_an_assertion_is_in_its_section_and_no_other(name: str) -> None:
    wanted = fields(ASSERTIONS[name]) - {"type", "id"}
    if name == "state_unchanged":
        wanted |= fields(Exemption)
    if name == "tool_calls":
        wanted |= fields(ExpectedCall)
    if name == "claims":
        wanted |= fields(Claim)
    assert set(first_cells(section("scenario.md", f"`{name}`"))) == wanted
    assert {"type", "id"} <= ticked(section("scenario.md", "Assertions"))


def test_every_word_of_counts_is_named() -> None:
    assert words_of(Counts) <= ticked(section("scenario.md", "`tool_called`"))


def test_what_is_said_of_a_judge_is_so() -> None:
    told = section("judge.md", "What the judge is asked")
    assert f"{SHOWN:,} characters" in told
    assert f"{RESULTS:,}" in told
    assert f"{SECONDS:g} seconds" in told
    which = section("judge.md", "Which judge")
    assert f"`{DEFAULT}`" in which
    assert {name for names in KEYS.values() for name in names} <= ticked(which)
    assert set(first_cells(section("judge.md", "Against labels by hand"))) == set(Label.model_fields)


# Verdicts


def test_every_word_of_a_verdict_is_named() -> None:
    assert set(first_cells(section("verdicts.md", "From findings to a verdict"))) == words_of(Result)
    assert set(first_cells(section("verdicts.md", "How a trial ends"))) == words_of(Status)
    told = section("verdicts.md", "What is evidence")
    assert words_of(Rests) <= set(first_cells(told))
    told = section("verdicts.md", "Why a trial failed")
    assert set(first_cells(told)) == words_of(FailureCategory) | words_of(Mode)


def test_every_field_of_a_verdict_file_is_named() -> None:
    trial = TrialResult(
        "s", 1, Verdict("pass", "completed", "", (Finding("a", "pass", "", "wire", 1, 1, 1),)), 0.0, "real"
    )
    told = ticked(section("verdicts.md", "Reading `verdict.json`"))
    assert {*trial.as_json(), "schema_version", "run_id", "kept", *words_of(Kind)} <= told
    assert set(Finding.__dataclass_fields__) <= told
