from pathlib import Path

from tests.harness.isolation import plant


def test_no_trial_has_anything_of_another_that_runs_at_the_same_time(tmp_path: Path) -> None:
    planted = plant(tmp_path, 8, 4)
    assert [trial.verdict.result for trial in planted.ran.result.trials] == ["pass"] * 8
    assert planted.missing() == []
    assert planted.strays() == []


def test_a_marker_in_another_trials_folder_would_be_found(tmp_path: Path) -> None:
    planted = plant(tmp_path, 2, 2)
    one, other = planted.markers
    (planted.ran.folder / other / "1" / "agent.err").write_text(f"so {planted.markers[one]}")
    manifest = planted.ran.folder / "manifest.json"
    manifest.write_text(planted.markers[other])
    assert planted.strays() == [f"manifest.json: that of {other}", f"{other}/1/agent.err: that of {one}"]
