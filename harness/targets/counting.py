"""Watches the folder of the span files while a trial runs: counts its calls, and notes what happens to the files.

Refuses to know what the calls were. A proxy only ever makes a file and appends to it; whoever does anything else to
one hides what it told, so that is noted.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from harness.targets.folderwatch import FolderWatch
from proxy.plainfile import lines_of, open_plain
from proxy.spanread import LONGEST_LINE
from proxy.spans import JSON
from proxy.vocabulary import METHOD, SPAN_KIND

_CALL = b'"tools/call"'
_SPANS = ".jsonl"
_REMOVED = "a span file was removed or renamed while the agent ran"
_REPLACED = "a span file was replaced while the agent ran"


def _is_call(line: bytes) -> bool:
    """Whether the span line is the decision on a tools/call: each attempted call has exactly one."""
    if _CALL not in line or b'"decision"' not in line:
        return False
    try:
        document: JSON = json.loads(line)
    except (ValueError, RecursionError):
        return False
    match document:
        case {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": list(attributes)}]}]}]}:
            texts: dict[str, JSON] = {}
            for attribute in attributes:
                match attribute:
                    case {"key": str(key), "value": {"stringValue": str(value)}}:
                        texts[key] = value
            return texts.get(SPAN_KIND) == "decision" and texts.get(METHOD) == "tools/call"
    return False


@dataclass(slots=True)
class CallCounter:
    """The attempted calls in one folder of span files, blocked ones too, and what was done to the files meanwhile.

    `watch` hears also of what was done between two looks.
    """

    folder: Path
    watch: FolderWatch | None = None
    _counted: int = 0
    _places: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    _doubts: dict[str, None] = field(default_factory=dict)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What happened to the files so far that no proxy does, in sentences."""
        return tuple(self._doubts)

    def look(self) -> None:
        """Compare the files with those of the last look. What cannot be read is left to the one who reads them all."""
        if self.watch is not None and self.watch.problem:
            self._doubts[f"the span files could not be watched: {self.watch.problem}"] = None
        taken, put = (False, False) if self.watch is None else self.watch.gone(_SPANS)
        if taken:
            self._doubts[_REMOVED] = None
        if put:
            self._doubts[_REPLACED] = None
        there: dict[str, tuple[int, int]] = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith(_SPANS):
                        status = entry.stat(follow_symlinks=False)
                        there[entry.name] = status.st_ino, status.st_size
        except OSError as error:
            self._doubts[f"the span files could not be watched: {error.strerror}"] = None
            return
        for name, (number, size) in self._seen.items():
            now = there.get(name)
            if now is None:
                self._doubts[_REMOVED] = None
            elif now[0] != number:
                self._doubts[_REPLACED] = None
            elif now[1] < size:
                self._doubts["a span file was cut short while the agent ran"] = None
        self._seen = there

    def count(self) -> int:
        """How many calls whole lines tell of so far; each line is read once. Looks, too."""
        self.look()
        for name in sorted(self._seen):
            try:
                self._read(name)
            except OSError:
                continue
        return self._counted

    def _read(self, name: str) -> None:
        with open_plain(self.folder / name) as file:
            file.seek(self._places.get(name, 0))
            for line in lines_of(file, LONGEST_LINE):
                if not line.endswith(b"\n"):
                    break
                self._places[name] = self._places.get(name, 0) + len(line)
                self._counted += _is_call(line)
