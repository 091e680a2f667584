"""A progress bar on a terminal's standard error, and nothing anywhere else.

Refuses to know what is in progress: it counts, and says how many are not a pass.
"""

import shutil
from dataclasses import dataclass
from typing import TextIO

BAR = 24


@dataclass(slots=True)
class Progress:
    """Count `total` things on `stream`. Silent unless the stream is a terminal."""

    total: int
    stream: TextIO
    done: int = 0
    red: int = 0

    def __post_init__(self) -> None:
        self._draw("")

    def advance(self, label: str, passed: bool) -> None:
        """One more is done."""
        self.done += 1
        self.red += not passed
        self._draw(label)

    def finish(self) -> None:
        """Take the bar away."""
        if self.stream.isatty():
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def _draw(self, label: str) -> None:
        if not self.stream.isatty():
            return
        filled = BAR * self.done // max(1, self.total)
        text = f"[{'#' * filled}{'-' * (BAR - filled)}] {self.done}/{self.total}"
        if self.red:
            text += f", {self.red} not passed"
        columns = shutil.get_terminal_size().columns
        self.stream.write("\r" + f"{text} {label}"[: columns - 1] + "\x1b[K")
        self.stream.flush()
