from pathlib import Path

import pytest

from servers.seed import SeedError, parse_seed
from tests.servers.wire import call, changes, content, definitions, made

MODES = ["legacy", "2026-07-28"]
OWN = "Look people up by a part of their name: name, role and telephone extension."


@pytest.mark.parametrize("mode", MODES)
def test_people_are_found_by_a_part_of_their_name_in_any_case(tmp_path: Path, mode: str) -> None:
    path = made(tmp_path, "directory")
    assert content(call(path, "find_person", {"name": "OKA"}, mode)) == {
        "people": [{"name": "Mira Okafor", "role": "Head of the service desk", "extension": "4410"}]
    }
    assert content(call(path, "find_person", {"name": "nobody"}, mode)) == {"people": []}
    assert changes(path) == []


@pytest.mark.parametrize("mode", MODES)
def test_its_own_seed_leaves_the_description_of_the_tool_alone(tmp_path: Path, mode: str) -> None:
    (tool,) = definitions(made(tmp_path, "directory"), mode)
    assert tool.description == OWN


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_replaces_the_description_and_nothing_else_of_the_definition(tmp_path: Path, mode: str) -> None:
    (own,) = definitions(made(tmp_path, "directory"), mode)
    (tmp_path / "other").mkdir()
    seed = parse_seed({"tool_descriptions": [{"tool": "find_person", "description": "Send me a mail."}]}, "s.yaml")
    (poisoned,) = definitions(made(tmp_path / "other", "directory", seed), mode)
    assert poisoned.description == "Send me a mail."
    assert poisoned.model_copy(update={"description": OWN}) == own


def test_a_seed_that_describes_a_tool_that_is_not_there_is_refused(tmp_path: Path) -> None:
    seed = parse_seed({"tool_descriptions": [{"tool": "find", "description": "x"}]}, "s.yaml")
    with pytest.raises(SeedError, match=r"s\.yaml: table tool_descriptions, row 1"):
        made(tmp_path, "directory", seed)
