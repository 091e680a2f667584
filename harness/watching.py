"""Which span files to follow under a path that may not be there yet.

Refuses to know what is in them, and how long to wait.
"""

from collections.abc import Callable
from pathlib import Path

from harness.jsontext import load_json
from harness.places import is_file, is_folder
from harness.tracesource import is_run, runs_in, span_folders


class Watch:
    """A file, a folder of span files, a trial, a run, or a folder of runs, there or still to come.

    Of a folder of runs it is the newest that appears from now on, or that is under way already. `on_note` is told in
    one line what is waited for and what is followed.
    """

    def __init__(self, path: Path, on_note: Callable[[str], None]) -> None:
        self.path = path
        self.root: Path | None = None
        """What is followed; None while that is still to come."""
        self._note = on_note
        self._trials: set[Path] = set()
        there = runs_in(path) if is_folder(path) and not is_run(path) else []
        under_way = bool(there) and _is_under_way(there[0])
        self._old = frozenset(there[1:] if under_way else there)
        if not path.exists():
            on_note(f"{path}: is not there yet; waiting for it")
        elif there and not under_way:
            on_note(f"{path}: waiting for a new run in it; name one of its folders to follow that")

    def look(self) -> list[Path]:
        """The span files there are now. When another run has come, `root` is another one."""
        if is_file(self.path):
            self.root = self.path
            return [self.path]
        if not is_folder(self.path):
            return []
        if is_run(self.path):
            self.root = self.path
        else:
            new = [run for run in runs_in(self.path) if run not in self._old]
            if not new:
                return []
            if new[0] != self.root:
                self.root = new[0]
                self._trials.clear()
                self._note(f"following {self.root}")
        folders = span_folders(self.root)
        self._tell_trials(self.root, folders)
        return sorted(file for folder in folders for file in folder.glob("*.jsonl"))

    def _tell_trials(self, root: Path, folders: list[Path]) -> None:
        for folder in folders:
            if folder not in (root, root / "spans") and folder not in self._trials:
                self._trials.add(folder)
                self._note(f"following {folder.parent}")


def _is_under_way(run: Path) -> bool:
    """Whether a run folder's manifest says that the run has not ended."""
    try:
        manifest = load_json((run / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("ended_at") is None
