"""docs/agents-model.md names every field, event and provider there is, and no other."""

import re
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from harness.architectures.asking import FIRST_WAIT, LONGEST_WAIT
from harness.architectures.playing import ROOM
from harness.modelagent import FORM, ModelAgentEntry, ModelEntry, PricesEntry, Provider
from harness.models.provided import KEYS
from harness.models.script import FailEntry, RuleEntry, UsageEntry, WhenEntry
from harness.models.scripted import AGAIN
from harness.roster import Architecture
from tests.harness.runs import ROOT

TEXT = (ROOT / "docs" / "agents-model.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def first_cells(text: str) -> set[str]:
    cells = re.findall(r"^\|([^|]*)\|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def fields(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_every_field_of_the_files_is_in_its_table_and_no_other() -> None:
    assert first_cells(section("The agent file")) == fields(ModelAgentEntry)
    assert first_cells(section("The model")) == fields(ModelEntry)
    assert first_cells(section("Scripts")) == fields(RuleEntry) | fields(WhenEntry)
    for smaller in (PricesEntry, FailEntry, UsageEntry):
        assert all(re.search(rf"\b{name}\b", TEXT) for name in fields(smaller))


def test_every_architecture_provider_key_and_number_is_named() -> None:
    assert first_cells(section("Architectures")) == set(get_args(Architecture))
    told = set(re.findall(r"`([A-Za-z_]+)`", TEXT))
    assert set(get_args(Provider)) <= told
    assert {name for names in KEYS.values() for name in names} <= told
    assert all(str(status) in section("The model") for status in AGAIN)
    assert f"{FIRST_WAIT:g} s" in TEXT
    assert f"{LONGEST_WAIT:g} s" in TEXT
    assert f"{ROOM} characters" in TEXT
    assert f"`[{', '.join(FORM)}]`" in TEXT


def test_every_event_of_our_loop_is_in_the_table_and_no_other() -> None:
    folder = Path(ROOT / "harness" / "architectures")
    told = {name for file in folder.glob("*.py") for name in re.findall(r'tell\("(\w+)"', file.read_text())}
    assert first_cells(section("Events")) == told
