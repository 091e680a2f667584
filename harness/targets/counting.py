"""Counts the calls of a trial while it runs, by reading the span files as they grow.

Refuses to know what the calls were.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from proxy.spans import JSON
from proxy.vocabulary import METHOD, SPAN_KIND

_CALL = b'"tools/call"'


def _is_call(line: bytes) -> bool:
    """Whether the span line is the decision on a tools/call: each attempted call has exactly one."""
    if _CALL not in line or b'"decision"' not in line:
        return False
    try:
        document: JSON = json.loads(line)
    except ValueError:
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
    """The attempted calls in one folder of span files, blocked ones too."""

    folder: Path
    _counted: int = 0
    _places: dict[str, int] = field(default_factory=dict)

    def count(self) -> int:
        """How many calls whole lines tell of so far; each line is read once."""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".jsonl"):
                self._read(name)
        return self._counted

    def _read(self, name: str) -> None:
        with open(self.folder / name, "rb") as file:
            file.seek(self._places.get(name, 0))
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._places[name] = self._places.get(name, 0) + len(line)
                self._counted += _is_call(line)
