import json
from collections import Counter
from pathlib import Path

from tests.conformance.suite import Difference, differences, read


def written(folder: Path, scenario: str, *checks: tuple[str, str]) -> None:
    place = folder / f"server-{scenario}-2026-11-30T12-00-00-000Z"
    place.mkdir(parents=True)
    (place / "checks.json").write_text(json.dumps([{"id": one, "status": status} for one, status in checks]))


def test_two_runs_differ_where_a_check_of_a_scenario_does(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / name, "same", ("one", "SUCCESS"), ("told", "INFO"))
    written(tmp_path / "a", "other", ("one", "SUCCESS"), ("one", "SUCCESS"))
    written(tmp_path / "b", "other", ("one", "SUCCESS"), ("one", "FAILURE"))
    written(tmp_path / "b", "more", ("one", "SUCCESS"))
    first, second = read(tmp_path / "a"), read(tmp_path / "b")
    assert first["same"] == Counter({("one", "SUCCESS"): 1})
    assert differences(first, first) == []
    assert differences(first, second) == [
        Difference("more", Counter(), Counter({("one", "SUCCESS"): 1})),
        Difference("other", Counter({("one", "SUCCESS"): 1}), Counter({("one", "FAILURE"): 1})),
    ]
