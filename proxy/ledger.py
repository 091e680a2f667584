"""The record of one connection as it is being written, and the moments and random ids that stand in it.

Refuses to know what a line of it says.
"""

import os
from collections.abc import Sequence
from time import monotonic_ns, time_ns

from proxy.record import Stamp
from proxy.spanfile import SpanFile, SpanFileError

_POOL = 512


def random_hex(digits: int) -> str:
    """Random lower-case hex digits, an even number of them."""
    return os.urandom(digits // 2).hex()


class RandomHex:
    """The same for one connection, asked of the system in one go for many ids. Not for several threads at once."""

    def __init__(self) -> None:
        self._pool = ""
        self._at = 0

    def __call__(self, digits: int) -> str:
        """So many digits, at most 512."""
        at = self._at
        if at + digits > len(self._pool):
            self._pool, at = os.urandom(_POOL // 2).hex(), 0
        self._at = at + digits
        return self._pool[at : at + digits]


def now() -> Stamp:
    """This moment."""
    return Stamp(monotonic_ns(), time_ns())


class Ledger:
    """A span file and what became of it; `failure` is "" while the record is whole."""

    def __init__(self, spans: SpanFile) -> None:
        self.spans = spans
        self.failure = ""

    def write(self, records: "Sequence[str | bytes | bytearray]", *, checked: bool = True) -> bool:
        """Write span lines at once; whether they are on the file. `checked`: see `SpanFile.append_all`."""
        try:
            self.spans.append_all(records, checked=checked)
        except SpanFileError as error:
            self.fail(str(error))
            return False
        return True

    def fail(self, why: str) -> None:
        """Note the first thing that went wrong."""
        self.failure = self.failure or why

    def close(self) -> None:
        """Close the span file."""
        try:
            self.spans.close()
        except SpanFileError as error:
            self.fail(str(error))
