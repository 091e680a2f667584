"""Where an agent's standard output and error go while it runs, and how they come into the run folder without secrets.

Refuses to know who the agent is.
"""

from dataclasses import dataclass
from pathlib import Path

from harness.hiding import Hiding
from harness.runfolder import TrialFolder, replace


@dataclass(frozen=True, slots=True)
class Streams:
    """`output` and `errors` are files to append to. With secrets to hide they lie in the private folder at first.

    A secret may come in pieces, so nothing of a stream is known to be without one before all of it is there.
    """

    folder: TrialFolder
    private: Path
    hiding: Hiding

    @property
    def output(self) -> Path:
        """What the agent's standard output is written to."""
        return self._place(self.folder.output)

    @property
    def errors(self) -> Path:
        """What the agent's standard error, and that of servers which we start, is written to."""
        return self._place(self.folder.errors)

    def _place(self, kept: Path) -> Path:
        return kept if self.hiding.redactor is None else self.private / kept.name

    def publish(self) -> None:
        """Put what was written so far into the run folder, redacted as a whole. Nobody may write any more."""
        for kept in (self.folder.output, self.folder.errors):
            written = self._place(kept)
            if written != kept and written.is_file():
                text = written.read_bytes().decode("utf-8", "surrogateescape")
                replace(kept, self.hiding.text(text))
                written.unlink()
